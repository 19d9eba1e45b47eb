"""Parses unified diffs, git's and plain ones, and ignores prose, mail headers or listings between them."""

import re
from dataclasses import field

from handrail.model.faults import BadPatch, BinaryPatch, SpecialMode
from handrail.model.record import record
from handrail.ops.patch.header_names import Name, read_name, read_pair, read_path, strip_prefixes
from handrail.ops.patch.hunks import lost_line, names_follow, read_hunk
from handrail.ops.patch.model import Action, Chunk, FilePatch

_GIT, _INDEX = b"diff --git ", b"Index: "
_COMBINED = re.compile(rb"diff --(?:cc|combined) ")
_BINARY = re.compile(rb"(?:Binary f|F)iles (.+) and (.+) differ\s*$")
_MODE = re.compile(rb"(old|new|deleted file|new file) mode ([0-7]{6})\s*$")
_INDEX_MODE = re.compile(rb"(index) [0-9a-f]+\.\.[0-9a-f]+ ([0-7]{6})\s*$")
_MOVES = ("rename from", "rename to", "copy from", "copy to")
_REGULAR = "100"


def begins(lines: list[bytes], at: int) -> bool:
    """Return whether the diff of a file begins at this line."""
    return lines[at].startswith((_GIT, _INDEX)) or names_follow(lines, at) or bool(_COMBINED.match(lines[at]))


def binary_file(line: bytes) -> str:
    """Return the file that a line `Binary files … differ` names; empty for any other line."""
    binary = _BINARY.match(line)
    old, new = strip_prefixes(read_name(binary[1]).text, read_name(binary[2]).text) if binary else ("", "")
    return new or old


def parse(lines: list[bytes]) -> list[FilePatch]:
    """Parse all diffs in the lines. Raises BadPatch, BinaryPatch or SpecialMode."""
    return _UnifiedReader(lines).sections()


@record
class _Section:
    """Collects the diff of one file while it is read."""

    at: int
    """The line number in the patch, counted from 1."""
    git: bool = False
    pair: tuple[str, str] = ("", "")
    old: Name | None = None
    new: Name | None = None
    index: str = ""
    moved: dict[str, str] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)

    def take_header(self, line: bytes) -> bool:
        """Store one of git's lines between `diff --git` and the hunks; return False for any other line."""
        if self.chunks:
            return False
        for key in _MOVES:
            if line.startswith(key.encode() + b" "):
                self.moved[key] = read_path(line[len(key) + 1 :])
                return True
        mode = _MODE.match(line) or _INDEX_MODE.match(line)
        if mode:
            self.modes[_text(mode[1])] = _text(mode[2])
        return bool(mode)

    def names(self) -> tuple[str, str]:
        """Return the old and the new name; `""` for a missing one."""
        if self.old and self.new:
            old, new = self.old.text, self.new.text
            if self.git and not (old and new) and strip_prefixes(*self.pair) == self.pair:
                return old, new
            return strip_prefixes(old, new)
        if self.git:
            old, new = strip_prefixes(*self.pair)
            return ("" if "new file" in self.modes else old), ("" if "deleted file" in self.modes else new)
        return self.index, self.index

    def finish(self) -> FilePatch:
        """Return what the diff does to the file. Raises BadPatch or SpecialMode."""
        old, new = self.names()
        path = self._path(old, new)
        self._refuse_special_modes(path)
        action, source = self._action(old, new)
        if action is Action.CREATE:
            path = _common_tail(old, new) or path
        self._expect_change(action, source, path)
        in_place = action in (Action.UPDATE, Action.DELETE) and not source
        aliases = self._aliases(path, old, new) if in_place else ()
        chunks, executable = tuple(self.chunks), self._executable()
        return FilePatch(action, path, chunks, source=source, aliases=aliases, executable=executable)

    def _path(self, old: str, new: str) -> str:
        """Return the path of the file after the patch."""
        path = self.moved.get("rename to") or self.moved.get("copy to") or new or old or self.index
        if not path:
            raise BadPatch("no_file", self.at)
        return path

    def _refuse_special_modes(self, path: str) -> None:
        """Raise SpecialMode if a mode is not the mode of a regular file."""
        for mode in self.modes.values():
            if not mode.startswith(_REGULAR):
                raise SpecialMode(path, mode)

    def _expect_change(self, action: Action, source: str, path: str) -> None:
        """Raise BadPatch if the diff changes neither content, name nor mode."""
        changes = self.chunks or source or self.modes.keys() - {"index"} or action is Action.DELETE
        if not changes:
            raise BadPatch("no_hunks", self.at, path)

    def _executable(self) -> bool | None:
        """Return the executable bit of the new mode; None if the diff gives no new mode."""
        mode = self.modes.get("new") or self.modes.get("new file")
        return None if mode is None else bool(int(mode, 8) & 0o100)

    def _action(self, old: str, new: str) -> tuple[Action, str]:
        """Return the action, and the source of a move or copy."""
        if "copy from" in self.moved:
            return Action.COPY, self.moved["copy from"]
        if "rename from" in self.moved:
            return Action.UPDATE, self.moved["rename from"]
        if not old or "new file" in self.modes or (self.old and self.old.epoch and not self._any("old")):
            return Action.CREATE, ""
        if not new or "deleted file" in self.modes or (self.new and self.new.epoch and not self._any("new")):
            return Action.DELETE, ""
        return Action.UPDATE, ""

    def _any(self, side: str) -> bool:
        return any(chunk.old if side == "old" else chunk.new for chunk in self.chunks)

    def _aliases(self, path: str, old: str, new: str) -> tuple[str, ...]:
        """Return the other names of the file: a plain diff gives two names, perhaps in two trees, and one exists."""
        names = [old, self.index, _common_tail(old, new)]
        return tuple(name for name in dict.fromkeys(names) if name not in ("", path))


def _common_tail(old: str, new: str) -> str:
    """Return the path below the first component if two names differ only in that component; else empty."""
    old_tail, new_tail = old.partition("/")[2], new.partition("/")[2]
    return new_tail if old != new and old_tail == new_tail else ""


class _UnifiedReader:
    """Reads all diffs in a text; `at` is the index of the current line."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines, self.at = lines, 0
        self.patches: list[FilePatch] = []
        self.section: _Section | None = None
        self.recounted = False
        """True if the counts of the last hunk were wrong."""

    def sections(self) -> list[FilePatch]:
        """Return the patches of all files."""
        while self.at < len(self.lines):
            self._line(self.lines[self.at])
        self._close()
        if not self.patches:
            raise BadPatch("no_patch")
        return self.patches

    def _close(self) -> None:
        if self.section and not self.section.git and not self.section.old:
            raise BadPatch("no_hunks", self.section.at, self.section.index)
        if self.section:
            self.patches.append(self.section.finish())
        self.section, self.recounted = None, False

    def _line(self, line: bytes) -> None:
        if line.startswith(_GIT):
            self._open(_Section(self.at + 1, git=True, pair=read_pair(line[len(_GIT) :])))
        elif line.startswith(_INDEX):
            self._open(_Section(self.at + 1, index=read_path(line[len(_INDEX) :])))
        elif names_follow(self.lines, self.at):
            self._names()
        elif line.startswith(b"@@"):
            self._hunk()
        elif self.section and self.section.git and self.section.take_header(line):
            self.at += 1
        else:
            self._prose(line)

    def _open(self, section: _Section) -> None:
        self._close()
        self.section = section
        self.at += 1

    def _names(self) -> None:
        if not self.section or self.section.old or self.section.chunks:
            self._close()
            self.section = _Section(self.at + 1)
        self.section.old = read_name(self.lines[self.at][4:])
        self.section.new = read_name(self.lines[self.at + 1][4:])
        self.at += 2

    def _hunk(self) -> None:
        line = self.lines[self.at]
        if line.startswith(b"@@@"):
            raise BadPatch("combined", self.at + 1, _text(line))
        if not self.section:
            raise BadPatch("no_file", self.at + 1, _text(line))
        chunk, self.at, counted = read_hunk(self.lines, self.at, len(self.section.chunks) + 1)
        self.section.chunks.append(chunk)
        self.recounted = not counted

    def _prose(self, line: bytes) -> None:
        """Skip a line that belongs to no diff, unless it shows a diff that cannot be applied."""
        binary = binary_file(line)
        if binary or line.startswith(b"GIT binary patch"):
            old, new = self.section.names() if self.section else ("", "")
            raise BinaryPatch(new or old or (self.section.index if self.section else binary))
        if _COMBINED.match(line):
            raise BadPatch("combined", self.at + 1, _text(line))
        lost = lost_line(self.lines, self.at) if self.recounted else None
        if lost:
            raise lost
        self.at += 1


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")
