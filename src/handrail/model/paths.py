"""Parses and quotes paths as the model writes them, without access to a file system.

`split` knows the rules of POSIX and of Windows, so that tests of both run on every system. It does not decide whether
`..` leaves the root: only the resolver, which follows links, can tell.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from handrail.model.faults import BadPath, OutsideRoot, PathTooLong

PATH_BYTES, NAME_BYTES = 4095, 255
MEMORIES = "/memories"
"""The path under which models know their memory directory."""

_DRIVE = re.compile(r"[A-Za-z]:")
_WINDOWS_ABSOLUTE = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³])[ ]*(?:\..*)?", re.IGNORECASE)
_UNFIT = re.compile(r'[\x00-\x1f"<>|*?:]')

# Invisible characters that change how text is displayed: with them a name could look like another name.
_INVISIBLE = "\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
_NEEDS_QUOTES = re.compile(f"[\x00-\x1f\x7f-\x9f{_INVISIBLE}\ud800-\udfff]")
_MAY_NEED_QUOTES = re.compile(r'["\\:]')
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_NAMED = {code: f"\\{letter}" for letter, code in _ESCAPES.items()}
_ESCAPED = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)


class GivenPath(NamedTuple):
    """Holds a path as the caller wrote it, split into components."""

    given: str
    parts: tuple[str, ...]
    """The components relative to the root; the resolver follows `..` and links in them."""
    wants_directory: bool = False
    """True if the path ends in `/`, `.` or `..`, so that only a directory fits."""


def quote(name: str) -> str:
    """Return a name as every answer shows it.

    A name that would look like another name, break a line or cannot be decoded gets git's quoting.
    """
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
    """Quote every name; one check answers for all names if none needs quotes."""
    together = "/".join(names)
    plain = together.isascii() and together.isprintable() and not _MAY_NEED_QUOTES.search(together)
    return names if plain else [quote(name) for name in names]


def unquote(text: str) -> str:
    """Undo `quote`; return text without quotes unchanged."""
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
    """Return a bare name from a patch in the form that `split` takes.

    A name with a drive letter stays as it is, so that `split` refuses it.
    """
    return name if _WINDOWS_ABSOLUTE.match(name) else quote(name)


def is_absolute(text: str, *, windows: bool = False) -> bool:
    """Return whether a path, quoted or not, is absolute."""
    name = unquote(text)
    return name.startswith("/") or bool(windows and _WINDOWS_ABSOLUTE.match(name))


def stem_of(root: str) -> str:
    """Return how the absolute paths inside a root begin: its own path and one slash."""
    return f"{root.rstrip('/')}/"


def relative_to_root(text: str, roots: tuple[str, ...]) -> str | None:
    """Return the part of an absolute path or glob behind the root and its slash; None if it has no such part."""
    for root in roots:
        if text.startswith(stem_of(root)):
            return text[len(stem_of(root)) :].lstrip("/")
    return None


@lru_cache(256)
def split(text: str, roots: tuple[str, ...], *, windows: bool = False) -> GivenPath:
    """Split a path into its components relative to the root.

    `roots` are the absolute paths of the root: the caller may write any of them in front.
    """
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
        raise PathTooLong(text)
    rest = _below_root(text, name, roots, windows=windows)
    pieces = rest.replace("\\", "/").split("/") if windows else rest.split("/")
    parts = tuple(piece for piece in pieces if piece not in ("", "."))
    for part in parts:
        if len(part) > NAME_BYTES // 4 and len(part.encode(errors="surrogateescape")) > NAME_BYTES:
            raise PathTooLong(text)
        if windows and part != ".." and not _fits_windows(part):
            raise BadPath(text, "reserved")
    return GivenPath(text, parts, wants_directory=pieces[-1] in ("", ".", ".."))


def _below_root(given: str, name: str, roots: tuple[str, ...], *, windows: bool) -> str:
    """Return `name` without the root in front; raise OutsideRoot if it is absolute and not inside a root."""
    if windows:
        if not (_DRIVE.match(name) or name[0] in "\\/"):
            return name
        folded, bounds = _folded(name), [_folded(root) for root in roots]
    elif _WINDOWS_ABSOLUTE.match(given):  # only without quotes: in quotes it is a plain file name
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
    """Fold case as Windows does, character by character: ß is not ss, and the length stays the same."""
    return "".join(char.upper() if char.upper().lower() == char else char for char in name.replace("\\", "/"))


def _fits_windows(part: str) -> bool:
    return not (_UNFIT.search(part) or part[-1] in ". " or _DEVICE.fullmatch(part))
