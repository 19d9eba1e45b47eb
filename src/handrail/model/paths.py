"""A path as the model wrote it, parsed once: no file system is asked here.

`split` knows the rules of both systems, so that both can be tested anywhere. What leaves the root by `..` is
not decided here: only the resolution, which follows links, can say.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from handrail.model.faults import BadPath, OutsideRoot

PATH_BYTES, NAME_BYTES = 4095, 255

_DRIVE = re.compile(r"[A-Za-z]:")
_WINDOWS_ABSOLUTE = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³])[ ]*(?:\..*)?", re.IGNORECASE)
_UNFIT = re.compile(r'[\x00-\x1f"<>|*?:]')

# Marks that change how text is shown without being seen: a name must not be able to lie about itself.
_INVISIBLE = "\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
_NEEDS_QUOTES = re.compile(f"[\x00-\x1f\x7f-\x9f{_INVISIBLE}\ud800-\udfff]")
_MAY_NEED_QUOTES = re.compile(r'["\\:]')
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_NAMED = {code: f"\\{letter}" for letter, code in _ESCAPES.items()}
_ESCAPED = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)


class GivenPath(NamedTuple):
    given: str
    parts: tuple[str, ...]
    """The components beneath the root; `..` and links in it are for the resolver."""
    wants_directory: bool = False


def quote(name: str) -> str:
    """A name as every answer shows it: git's quoting where plain text would lie, break a line or be undecodable."""
    looks_quoted = name.startswith('"') and name.endswith('"')
    if not (looks_quoted or _NEEDS_QUOTES.search(name) or _WINDOWS_ABSOLUTE.match(name)):
        return name
    shown: list[str] = []
    for char in name:
        if _NEEDS_QUOTES.match(char) or char in '"\\':
            shown.extend(_NAMED.get(b) or f"\\{b:03o}" for b in char.encode(errors="surrogateescape"))
        else:
            shown.append(char)
    return f'"{"".join(shown)}"'


def quote_all(names: list[str]) -> list[str]:
    """`quote` for each, at once where none needs quotes."""
    together = "/".join(names)
    plain = together.isascii() and together.isprintable() and not _MAY_NEED_QUOTES.search(together)
    return names if plain else [quote(name) for name in names]


def unquote(text: str) -> str:
    """The inverse of `quote`; text without the quotes is returned as it is."""
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')):
        return text

    def plain(match: re.Match[bytes]) -> bytes:
        code = match[1].decode("latin-1")
        if code in _ESCAPES:
            return bytes([_ESCAPES[code]])
        return bytes([int(code, 8) & 0xFF]) if code[0] in "01234567" else match[0]

    raw = text[1:-1].encode(errors="surrogateescape")
    return _ESCAPED.sub(plain, raw).decode(errors="surrogateescape")


def given_form(name: str) -> str:
    """A bare name, as a patch holds it, in the form that `split` takes. A drive letter stays one, and is refused."""
    return name if _WINDOWS_ABSOLUTE.match(name) else quote(name)


def is_absolute(text: str, *, windows: bool = False) -> bool:
    name = unquote(text)
    return name.startswith("/") or bool(windows and _WINDOWS_ABSOLUTE.match(name))


@lru_cache(256)
def split(text: str, roots: tuple[str, ...], *, windows: bool = False) -> GivenPath:
    """The components of `text` beneath the root. `roots` are the absolute names that the root is known by."""
    if not text:
        raise BadPath(text, "empty")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadPath(ascii(text)[1:-1], "not_text") from None
    name = unquote(text)
    if name != text:
        size = len(name.encode(errors="surrogateescape"))
    if "\0" in name:
        raise BadPath(text, "nul")
    if size > PATH_BYTES:
        raise BadPath(text, "too_long")
    rest = _beneath(text, name, roots, windows=windows)
    pieces = rest.replace("\\", "/").split("/") if windows else rest.split("/")
    parts = tuple(piece for piece in pieces if piece not in ("", "."))
    for part in parts:
        if len(part) > NAME_BYTES // 4 and len(part.encode(errors="surrogateescape")) > NAME_BYTES:
            raise BadPath(text, "too_long")
        if windows and part != ".." and not _fits_windows(part):
            raise BadPath(text, "reserved")
    return GivenPath(text, parts, wants_directory=pieces[-1] in ("", ".", ".."))


def _beneath(given: str, name: str, roots: tuple[str, ...], *, windows: bool) -> str:
    """`name` without the root in front; refused when it names another place absolutely."""
    if windows:
        if not (_DRIVE.match(name) or name[0] in "\\/"):
            return name
        folded, bounds = _folded(name), [_folded(root) for root in roots]
    elif _WINDOWS_ABSOLUTE.match(given):  # in quotes it is the name of a file here
        raise OutsideRoot(given)
    elif not name.startswith("/"):
        return name
    else:
        folded, bounds = name, list(roots)
    for bound in bounds:
        stem = bound.rstrip("/")
        if folded == stem or folded.startswith(stem + "/"):
            return name[len(stem) :].lstrip("\\/" if windows else "/")
    raise OutsideRoot(given)


def _folded(name: str) -> str:
    """For comparing as Windows does, character by character: ß is not ss, and no name changes its length."""
    return "".join(char.upper() if char.upper().lower() == char else char for char in name.replace("\\", "/"))


def _fits_windows(part: str) -> bool:
    return not (_UNFIT.search(part) or part[-1] in ". " or _DEVICE.fullmatch(part))
