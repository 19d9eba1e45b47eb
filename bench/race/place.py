"""What the contenders work on: a large tree, one huge file, one full directory, and a folder for each to write in."""

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.corpus import corpus
from handrail.ops.text.unified_diff import unified

RARE, NOTHING, COMMON = "PyUnicode_DecodeUTF8Stateful", "no such text anywhere 7c41", "the"
FOUND = "unicodeobject.h"
"""Where the rare text stands, in every Python that could be copied."""
HUGE_LINES, DEEP = 2_000_000, 1_900_000
PATCHED, HUNKS, LINES = 10, (20, 100, 180), 200


@dataclass(frozen=True)
class Place:
    root: str

    @property
    def tree(self) -> str:
        return f"{self.root}/tree"

    @property
    def small(self) -> str:
        return f"{self.root}/small.txt"

    @property
    def huge(self) -> str:
        return f"{self.root}/huge.txt"

    @property
    def many(self) -> str:
        return f"{self.root}/many"

    def own(self, contender: str) -> str:
        """The contender's own folder, as its name can be written in a path."""
        return f"{self.root}/own/{''.join(c if c.isalnum() else '-' for c in contender)}"

    def prepare(self, contender: str) -> None:
        own = Path(self.own(contender))
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir(parents=True)
        (own / "edit.txt").write_text("".join(f"line {n:05} {'x' * 87}\n" for n in range(10_000)))
        for number in range(PATCHED):
            (own / f"patch{number}.txt").write_text(_patched(number, changed=False))

    def patch(self, contender: str, *, forth: bool) -> dict[str, str]:
        """A patch of 30 hunks in ten files there or back, as an envelope and as a unified diff."""
        stem = os.path.relpath(self.own(contender), self.root)
        envelope, diff = ["*** Begin Patch"], []
        for number in range(PATCHED):
            name = f"{stem}/patch{number}.txt"
            envelope += [f"*** Update File: {name}", *_hunks(number, forth=forth)]
            before, after = (_patched(number, changed=changed).encode() for changed in (not forth, forth))
            diff.append(unified(name, before, after))
        return {"text": "\n".join([*envelope, "*** End Patch", ""]), "unified": "".join(diff)}


def _huge(number: int) -> str:
    """Short lines first, then long ones: where a line begins cannot be guessed from the size of the file."""
    return f"line {number:08} of a huge file".ljust(34 if number < HUGE_LINES // 2 else 64) + "\n"


def _line(number: int, line: int, *, changed: bool) -> str:
    return f"{'changed' if changed else 'line'} {line} of file {number}"


def _patched(number: int, *, changed: bool) -> str:
    return "".join(f"{_line(number, line, changed=changed and line in HUNKS)}\n" for line in range(LINES))


def _hunks(number: int, *, forth: bool) -> list[str]:
    lines = []
    for line in HUNKS:
        context = [f" {_line(number, each, changed=False)}" for each in (line - 1, line + 1)]
        old, new = (_line(number, line, changed=changed) for changed in (not forth, forth))
        lines += ["@@", context[0], f"-{old}", f"+{new}", context[1]]
    return lines


def place() -> Place:
    """Made once and kept for the next run."""
    root = os.path.join(os.path.realpath(tempfile.gettempdir()), "handrail-bench-place")
    made, ready = Place(root), f"{root}.ready"
    if not os.path.exists(ready):
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(corpus(), made.tree)
        Path(made.small).write_text("".join(f"line {n:04} of a small file\n" for n in range(190)))
        with open(made.huge, "w", encoding="utf-8") as file:
            file.writelines(map(_huge, range(1, HUGE_LINES + 1)))
        os.mkdir(made.many)
        for n in range(10_000):
            Path(made.many, f"file{n:05}.txt").touch()
        Path(ready).touch()
    return made
