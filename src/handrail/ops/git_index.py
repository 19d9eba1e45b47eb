"""Reads a git index: finds the submodules, and the paths that an ordinary index never contains.

Git trusts its index: it writes, reads and deletes the paths in it without a check. A command can write any bytes there.
So this reader accepts only the form that git writes. It refuses an index that git could read in two ways.
"""

import re
import struct
from bisect import bisect_left
from typing import NamedTuple

from handrail.model.limits import MIB

_LONGEST = 8192
"""The longest path in bytes. Linux accepts 4096; without a limit, a compressed index could grow without end."""
_ALL_NAMES = 64 * MIB
"""The most bytes of all paths together, for the same reason: 64 bytes can name a path of thousands."""
_NAME_MASK, _STAGE, _EXTENDED = 0xFFF, 0x3000, 0x4000
_FILE, _SYMLINK, _SUBMODULE, _DIRECTORY = 0x80, 0xA0, 0xE0, 0x40
"""The upper half of a byte of the mode: git uses no other part of that byte for the kind."""
_STRANGE = frozenset({"", ".", ".."})
"""Path parts that an index contains only if it was made to mislead."""
_NTFS = re.compile(r"(?:\.git|git~1)[. ]*(?::.*)?", re.IGNORECASE | re.DOTALL)
"""The names that mean `.git` on Windows file systems; git refuses them on every system."""
_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that macOS file systems ignore in names."""
_SUSPECT = re.compile(rb"(?:\A|[/\\])(?:\.|git~1|/|\Z)|\xe2[\x80\x81]|\xef\xbb\xbf", re.IGNORECASE)
"""A text in every path that may have a strange part; few ordinary paths contain it."""


class Index(NamedTuple):
    """Holds what Handrail needs to know about a git index."""

    links: list[str]
    """The paths of submodules."""
    plain: bool = True
    """True if every path is inside the tree, and git can read the index in one way only."""
    sparse: list[str] = []  # noqa: RUF012  never changed
    """Directories whose entries only a tree object lists; a submodule may be among them."""
    base: str = ""
    """The shared index that a split index is based on, as a hash."""


class _Extensions(NamedTuple):
    """Holds the extensions that change how git reads the entries."""

    base: str
    sparse: bool


class _Entries(NamedTuple):
    """Holds the entries of an index, in the order of the file."""

    names: list[bytes]
    kinds: list[int]
    merged: list[bool]
    """True if an entry is not a side of a conflict."""
    starts: list[int]
    """The offset of each entry."""
    whole: set[int]
    """The entries (of version 4) that take nothing from the name before them."""
    end: int


def read_index(index: bytes) -> Index:
    """Read an index as git reads it. An index that git could read in another way is not plain."""
    if not index:
        return Index([])
    found: list[Index] = []
    for hash_bytes in (20, 32):
        try:
            entries = _entries(index, hash_bytes)
            found.append(_judge(entries, _extensions(index, hash_bytes, entries)))
        except (ValueError, IndexError, struct.error):
            continue
    return found[0] if len(found) == 1 else Index([], plain=False)


def _entries(index: bytes, hash_bytes: int) -> _Entries:
    """Read the entries of an index whose hashes have this size. Raises ValueError, IndexError or struct.error."""
    magic, version, count = struct.unpack_from(">4sII", index, 0)
    if magic != b"DIRC" or not 2 <= version <= 4:
        raise ValueError(magic)
    at, name, total, found = 12, b"", 0, _Entries([], [], [], [], set(), 0)
    for number in range(count):
        start, flags_at = at, at + 40 + hash_bytes
        flags = index[flags_at] << 8 | index[flags_at + 1]
        if flags & _EXTENDED and version == 2:  # git reads it, but never writes it
            raise ValueError(flags)
        at = flags_at + (4 if flags & _EXTENDED else 2)
        if version == 4:
            dropped, at = _variable_number(index, at)
            if number and dropped > len(name):
                raise ValueError(dropped)
            if not number or dropped == len(name):
                found.whole.add(number)
            end = index.index(b"\0", at, at + _LONGEST)
            name, at = (name[: len(name) - dropped] if number else b"") + index[at:end], end + 1
        else:
            end = index.index(b"\0", at, at + _LONGEST)
            name, at = index[at:end], start + ((end - start) // 8 + 1) * 8
        total += len(name)
        fits = len(name) <= _LONGEST and total <= _ALL_NAMES
        if not fits or flags & _NAME_MASK not in (min(len(name), _NAME_MASK), _NAME_MASK):
            raise ValueError(name)
        found.names.append(name)
        found.kinds.append(index[start + 26] & 0xF0)
        found.merged.append(not flags & _STAGE)
        found.starts.append(start)
    return found._replace(end=at)


def _extensions(index: bytes, hash_bytes: int, entries: _Entries) -> _Extensions:
    """Read the extensions, which must fill the file up to its hash. Raises ValueError or struct.error."""
    at, last, base, sparse, starts = entries.end, len(index) - hash_bytes, "", False, set[int]()
    while at < last:
        name, size = struct.unpack_from(">4sI", index, at)
        starts.add(at)
        data = index[at + 8 : at + 8 + size]
        if name == b"link":
            base = data[:hash_bytes].hex() if any(data[:hash_bytes]) else ""
        elif name == b"sdir":
            sparse = True
        elif name == b"IEOT":
            _check_blocks(data, entries)
        elif not name[:1].isupper() or (name == b"EOIE" and struct.unpack_from(">I", data)[0] != entries.end):
            raise ValueError(name)  # git refuses an unknown extension with a small letter
        at += 8 + size
    marker = last - 12 - hash_bytes
    hidden = index[marker : marker + 4] == b"EOIE" and marker not in starts
    if at != last or (marker > 0 and hidden):  # git looks for this extension at a fixed distance from the end
        raise ValueError(at)
    return _Extensions(base, sparse)


def _check_blocks(data: bytes, entries: _Entries) -> None:
    """Check that the table with which git reads blocks in parallel leads to the same entries. Raises ValueError."""
    if len(data) % 8 != 4:
        raise ValueError(len(data))
    number = 0
    for offset, count in struct.iter_unpack(">II", data[4:]):
        in_place = number < len(entries.starts) and entries.starts[number] == offset
        if not in_place or not count or (entries.whole and number not in entries.whole):
            raise ValueError(offset)
        number += count
    if number != len(entries.starts):
        raise ValueError(number)


def _judge(entries: _Entries, extensions: _Extensions) -> Index:
    """Return the submodules, and whether git could have written these entries."""
    links, sparse, leaves = list[str](), list[str](), list[bytes]()
    for name, kind, merged in zip(entries.names, entries.kinds, entries.merged, strict=True):
        if not name and extensions.base and kind in (_FILE, _SYMLINK):
            continue  # it replaces an entry of the shared index, and has the name of that entry
        bare = name
        if kind == _DIRECTORY and extensions.sparse and name.endswith(b"/"):
            bare = name[:-1]
            sparse.append(bare.decode(errors="surrogateescape"))
        elif kind == _SUBMODULE:
            links.append(name.decode(errors="surrogateescape"))
        elif kind not in (_FILE, _SYMLINK):
            return Index([], plain=False)
        if _is_strange(bare, kind):
            return Index([], plain=False)
        if merged and kind in (_SYMLINK, _SUBMODULE):
            leaves.append(name)
    if leaves and _leads_through(
        leaves, [name for name, merged in zip(entries.names, entries.merged, strict=True) if merged]
    ):
        return Index([], plain=False)
    return Index(links, sparse=sparse, base=extensions.base)


def _is_strange(name: bytes, kind: int) -> bool:
    """Return whether git refuses to add a path: it leads out of the tree, or into a git directory on some system."""
    if not _SUSPECT.search(name):
        return False
    path = name.decode(errors="surrogateescape")
    if kind == _SYMLINK and path.lower() == ".gitmodules":
        return True
    plain_parts = _HFS.sub("", path).split("/")
    return (
        bool(_STRANGE.intersection(path.split("/")))
        or any(map(_NTFS.fullmatch, re.split(r"[/\\]", path)))
        or any(part.lower() == ".git" for part in plain_parts)
    )


def _leads_through(leaves: list[bytes], names: list[bytes]) -> bool:
    """Return whether a path lies below a link or a submodule of the same index."""
    ordered = sorted(names)
    for leaf in leaves:
        at = bisect_left(ordered, leaf + b"/")
        if at < len(ordered) and ordered[at].startswith(leaf + b"/"):
            return True
    return False


def _variable_number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number in git's variable-length encoding; return it and the index after it. Raises ValueError."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
        if value > _LONGEST:
            raise ValueError(value)
    return value, at + 1
