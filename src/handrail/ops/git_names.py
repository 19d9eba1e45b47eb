"""Decides which files a command may leave in a git directory: an allow-list by name, kind and content.

Git runs the programs that its configuration and hooks name, follows links when it writes, and continues an unfinished
operation as the files of that operation say. Every file that is not listed here is therefore guarded or set aside.
"""

import re
import struct
from typing import NamedTuple

ASIDE = "handrail-aside"
"""The directory in a git directory into which files are set aside. Git does not use this name."""

OCCUPIED: dict[str, bytes | None] = {
    "config": b"",
    "config.worktree": b"",
    "commondir": b".\n",
    "hooks": None,
    "info": None,
    "modules": None,
    "worktrees": None,
    "remotes": None,
    "branches": None,
    ASIDE: None,
}
"""Names that git obeys, each with the placeholder, which has no effect, for a missing one; None: an empty directory."""
OCCUPIED_LINKED: dict[str, bytes | None] = {"config.worktree": b"", ASIDE: None}
"""The same for the directory of a linked worktree, which has a `commondir` and finds the rest there."""

DEEP = frozenset({"refs", "logs", "reftable", "rr-cache", "lost-found", "NOTES_MERGE_WORKTREE"})
"""Directories that are checked at every depth."""
SHALLOW = frozenset({"objects", "objects/info", "objects/pack", "objects/info/commit-graphs", "lfs"})
"""Directories of which only the direct entries are checked: the names of deeper files are hashes of their content."""
UNFINISHED = frozenset({"rebase-merge", "rebase-apply", "sequencer"})
"""Directories of unfinished operations: checked at every depth, and the content of their files is checked too."""
_IN_OBJECTS = re.compile(
    r"[0-9a-f]{2}|pack|info|maintenance\.lock|schedule\.lock|(?:tmp_|incoming-|bulk-|tmp-objdir)[\w.-]*"
)
_IN_OBJECTS_INFO = re.compile(r"(?:packs|commit-graph|commit-graphs|multi-pack-index)(?:\.lock|_\w{6})?|(?:tmp_)\w+")
_FILE = re.compile(
    r"""(?: (?:[A-Z]+_)*HEAD | (?:COMMIT|TAG|NOTES)_EDITMSG | EDIT_DESCRIPTION | (?:MERGE|SQUASH)_MSG
        | MERGE_(?:MODE|RR|AUTOSTASH) | AUTO_MERGE | NOTES_MERGE_(?:PARTIAL|REF)
        | BISECT_(?:ANCESTORS_OK|EXPECTED_REV|FIRST_PARENT|LOG|NAMES|RUN|START|TERMS)
        | ADD_EDIT\.patch | addp-hunk-edit\.diff
        | index | index\.stash\.[0-9]+ | next-index-[0-9]+ | sharedindex(?:\.[0-9a-f]{40,64}|_\w{6})
        | packed-refs | packed-refs\.new | shallow | shallow_\w{6} | gc\.pid | gc\.log
    )(?:\.lock)?""",
    re.VERBOSE,
)

_STRATEGY = r"(?:ort|recursive|resolve|octopus|ours|subtree)"
_WORDS = r"[\w =:'-]*"
_APPLY = r"-[Cp][0-9]+|--whitespace=[\w-]+|--ignore-space-change|--ignore-whitespace|--reject"
_KEY_ID = r"(?:-S[\w@.+ <>-]*)?"
_QUOTED = r"'(?:[^']|'\\'')*'"
_AUTHOR = rf"(?:GIT_AUTHOR_[A-Z]+={_QUOTED})?"
_PART = r"(?!\.{1,2}(?:/|\0))[^/\0]+"
_STEPS = (
    *("p", "pick", "r", "reword", "e", "edit", "s", "squash", "f", "fixup", "d", "drop", "l", "label", "t", "reset"),
    *("m", "merge", "u", "update-ref", "b", "break", "noop", "revert"),
)
_TODO = rf"[ \t]*(?:#.*|(?:{'|'.join(_STEPS)})(?:[ \t].*)?)?"
_SETTINGS = (
    *("signoff", "record-origin", "allow-ff", "edit", "no-commit", "allow-empty", "allow-empty-message", "mainline"),
    *("keep-redundant-commits", "strategy-option", "allow-rerere-auto", "default-msg-cleanup"),
)
_OPTION = rf"\s*(?:\[options\]|(?:{'|'.join(_SETTINGS)})\s*=\s*[\w=-]*|strategy\s*=\s*{_STRATEGY})?\s*"
_LINES = {
    "rebase-merge/git-rebase-todo": _TODO,
    "rebase-merge/strategy": f"{_STRATEGY}?",
    "rebase-merge/strategy_opts": _WORDS,
    "rebase-merge/gpg_sign_opt": _KEY_ID,
    "rebase-merge/allow_rerere_autoupdate": _WORDS,
    "rebase-merge/author-script": _AUTHOR,
    "rebase-apply/author-script": _AUTHOR,
    "rebase-apply/apply-opt": rf"(?:\s*'(?:{_APPLY})')*\s*",
    "rebase-apply/gpg_sign_opt": _KEY_ID,
    "rebase-apply/allow_rerere_autoupdate": _WORDS,
    "sequencer/todo": _TODO,
    "sequencer/opts": _OPTION,
    "MERGE_RR": rf"(?:[0-9a-f]{{40,64}}(?:\.[0-9]+)?\t(?:{_PART}/)*{_PART}\0)*",
    "BISECT_NAMES": rf"(?:\s*{_QUOTED})*\s*",
    "BISECT_TERMS": r"(?:[\w.][\w./-]*)?",
    "BISECT_START": r"(?:[\w.][\w./-]*)?",
    "BISECT_LOG": r"(?:#.*|git bisect [^$`;|&<>]*)?",
}
"""Files from which git, or one of its shell scripts, reads commands: the form of a line that runs no program."""
_ORDERS = {name: re.compile(line) for name, line in _LINES.items()}

_PLAIN_KEYS = re.compile(
    r"""core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol
            |quotepath|abbrev)
        | user\.(?:name|email) | init\.defaultbranch | extensions\.objectformat
        | remote\.(?:url|pushurl|fetch|tagopt) | branch\.(?:remote|merge|rebase|description) | submodule\.active
        | pull\.(?:rebase|ff) | fetch\.prune | push\.default | merge\.(?:ff|conflictstyle) | rebase\.autostash
        | color\.ui | advice\.\w+ | gc\.(?:auto|autodetach)
    """,
    re.VERBOSE,
)
_STRANGE = frozenset({"", ".", "..", ".git"})
"""Path parts that an index contains only if it was made to mislead."""
_LINK_MODE, _DIRECTORY_MODE = 0xE0, 0x40
"""The upper half of a byte of the mode: git uses no other part of that byte."""
_SECTION = re.compile(r'\[([A-Za-z0-9.-]+)(?: "((?:[^"\\\n]|\\.)*)")?\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[^\n]*)?")


def may_be_written(name: str, *, is_directory: bool) -> bool:
    """Return whether ordinary git work writes this name at the top of a git directory."""
    if is_directory:
        return name in DEEP or name in UNFINISHED or name in SHALLOW
    return bool(_FILE.fullmatch(name))


def belongs(directory: str, name: str) -> bool:
    """Return whether git may write this name in a checked directory; only `objects` and `objects/info` limit names."""
    if directory == "objects":
        return bool(_IN_OBJECTS.fullmatch(name))
    return directory != "objects/info" or bool(_IN_OBJECTS_INFO.fullmatch(name))


def gives_orders(name: str) -> bool:
    """Return whether git reads commands from this file, so that its content must be checked."""
    return name in _ORDERS


def is_harmless(name: str, content: bytes) -> bool:
    """Return whether the commands in this file run nothing but git itself."""
    try:
        return all(map(_ORDERS[name].fullmatch, content.decode().split("\n")))
    except UnicodeDecodeError:
        return False


def is_plain_config(content: bytes) -> bool:
    """Return whether all settings run no program, as in the files that `git init` and `git clone` write."""
    section = ""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:
        return False
    for line in map(str.strip, lines):
        if not line or line[0] in "#;":
            continue
        if header := _SECTION.fullmatch(line):
            section = header[1].lower()
            continue
        key = _KEY.fullmatch(line)
        if key is None or line.endswith("\\") or not _PLAIN_KEYS.fullmatch(f"{section}.{key[1].lower()}"):
            return False
        value = line.partition("=")[2].strip().strip('"')
        if key[1].lower() in ("url", "pushurl") and not _is_address(value):
            return False
    return True


def _is_address(value: str) -> bool:
    """Return whether a remote is an ordinary address: `ext::…` and similar ones name a program."""
    return not value.startswith("-") and "::" not in value


class Index(NamedTuple):
    """Holds what Handrail needs to know about a git index."""

    links: list[str]
    """The paths of submodules."""
    plain: bool = True
    """True if every path is inside the tree. Git trusts an index: it would write, read and delete any other path."""


def read_index(index: bytes) -> Index:
    """Read an index as git reads it. An index that git could read in another way is not plain."""
    if not index:
        return Index([])
    for hash_bytes in (20, 32):
        try:
            return _entries(index, hash_bytes)
        except (ValueError, IndexError, struct.error):
            continue
    return Index([], plain=False)


def _entries(index: bytes, hash_bytes: int) -> Index:
    """Read the entries of an index whose hashes have this size. Raises ValueError, IndexError or struct.error."""
    magic, version, count = struct.unpack_from(">4sII", index, 0)
    if magic != b"DIRC" or not 2 <= version <= 4:
        raise ValueError(magic)
    at, name, links, plain = 12, b"", list[str](), True
    for _ in range(count):
        start, flags_at = at, at + 40 + hash_bytes
        flags = index[flags_at] << 8 | index[flags_at + 1]
        at = flags_at + (4 if flags & 0x4000 and version > 2 else 2)
        if version == 4:
            dropped, at = _variable_number(index, at)
            end = index.index(b"\0", at)
            name, at = name[: len(name) - dropped] + index[at:end], end + 1
        else:
            end = index.index(b"\0", at)
            name, at = index[at:end], start + ((end - start) // 8 + 1) * 8
        if flags & 0xFFF not in (min(len(name), 0xFFF), 0xFFF):
            raise ValueError(name)
        path, kind = name.decode(errors="surrogateescape"), index[start + 26] & 0xF0
        if kind == _DIRECTORY_MODE:  # a directory of a sparse index
            path = path.removesuffix("/")
        if b"/." in name or b"//" in name or name[:1] in (b".", b"/", b"") or name[-1:] == b"/":
            plain = plain and not _STRANGE.intersection(path.lower().split("/"))
        if kind == _LINK_MODE:
            links.append(path)
    return Index(links if plain else [], plain)


def _variable_number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number in git's variable-length encoding; return it and the index after it."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1


def pointed_to(content: bytes) -> str:
    """Return the path that a `.git` file names, read as git reads it; empty if the file names none."""
    text = content.decode(errors="surrogateescape")
    return text.removeprefix("gitdir: ").rstrip("\r\n") if text.startswith("gitdir: ") else ""
