"""Patches: a large file and many files against `git apply`, and a hostile patch against the clock.

The time of `git apply` is taken without its start, which a patch of one line measures.
"""

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

from bench.measure import Row, row
from handrail import Workspace
from handrail.model.faults import Fault
from handrail.ops.patch import PatchedContent, apply, parse
from handrail.ops.text.unified_diff import unified

ROUNDS = 7
SOURCE = random.Random(4)


def best(action: Callable[[], object], before: Callable[[], object] = lambda: None, rounds: int = ROUNDS) -> float:
    """The shortest of a few runs, in milliseconds."""
    times = []
    for _ in range(rounds):
        before()
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def words(count: int) -> list[bytes]:
    return [b"line %d %s" % (i, b"x" * SOURCE.randint(5, 60)) for i in range(count)]


def edited(lines: list[bytes], places: list[int]) -> bytes:
    changed = list(lines)
    for place in places:
        changed[place] = b"changed %d" % place
    return b"\n".join(changed) + b"\n"


def ours(files: dict[str, bytes], text: str) -> Callable[[], object]:
    def work() -> None:
        with suppress(Fault):
            apply(parse(text), lambda path: PatchedContent(files[path], 0o644))

    return work


def git_apply(files: dict[str, bytes], text: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "patch").write_bytes(text.encode())
        apply_all = partial(subprocess.run, ["git", "apply", "patch"], cwd=root, check=True)
        return best(apply_all, lambda: restore(root, files))


def run() -> list[Row]:
    start = git_apply({"f": b"a\n"}, unified("f", b"a\n", b"b\n"))
    files, text = a_thousand_files()
    return [large_file(start), worked_out(files, text, start), carried_out(files, text), *hostile()]


def large_file(start: float) -> Row:
    lines = words(25_000)
    data = b"\n".join(lines) + b"\n"
    text = unified("f", data, edited(lines, [100, 12_000, 24_000]))
    return row(
        "3 hunks on 1 MB, against git apply without its start",
        best(ours({"f": data}, text)),
        git_apply({"f": data}, text) - start,
        2.0,
    )


def a_thousand_files() -> tuple[dict[str, bytes], str]:
    files, text = {}, ""
    for number in range(1000):
        lines = words(60)
        name, data = f"d{number % 10}/f{number}", b"\n".join(lines) + b"\n"
        files[name] = data
        text += unified(name, data, edited(lines, [20]))
    return files, text


def worked_out(files: dict[str, bytes], text: str, start: float) -> Row:
    return row(
        "1000 files in one patch, worked out, against git apply without its start",
        best(ours(files, text), rounds=3),
        git_apply(files, text) - start,
        1.0,
    )


def carried_out(files: dict[str, bytes], text: str) -> Row:
    """The whole call, with all that `git apply` does not do: approved, synced, taken back if anything fails."""
    with tempfile.TemporaryDirectory() as folder, own_homes():
        root = Path(folder)
        with Workspace(folder, approve="auto") as workspace:

            def call() -> None:
                with closing(workspace.session()) as session:  # a session of its own has seen no other files
                    if not session.tools("codex").call("apply_patch_json", {"patch": text}).success:
                        raise RuntimeError("the patch does not apply")

            ours_ms = best(call, lambda: restore(root, files), rounds=5)
    return row("1000 files in one patch, carried out, against git apply", ours_ms, git_apply(files, text), 1.0)


@contextmanager
def own_homes() -> Iterator[None]:
    """Use nothing of the user's own state and rules."""
    with tempfile.TemporaryDirectory() as home:
        names = ("HANDRAIL_STATE_DIR", "HANDRAIL_CONFIG_DIR")
        before = {name: os.environ.get(name) for name in names}
        os.environ.update(dict.fromkeys(names, home))
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def restore(root: Path, files: dict[str, bytes]) -> None:
    """The files as they were, and on the disk: writing them is not what is measured."""
    for name, data in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(data)
    os.sync()


def hostile() -> list[Row]:
    """Each about 100 KB against 10 MB, made to be searched for long."""
    prose = b"\n".join(words(240_000))
    letters = b"a\n" * 5_000_000
    far = b"zzzz zzzz\n" * 990_000 + b"".join(b"k%d\n" % i for i in range(4500))
    cases = {
        "lines that are nowhere": (
            prose,
            envelope("".join(f"-line {i} xxxxxxxxxxxx y\n" for i in range(3700))),
        ),
        "a long block that almost matches everywhere": (letters, envelope("-a\n" * 33_000 + "-b\n")),
        "a block that stands everywhere": (letters, envelope("-a\n" * 33_000)),
        "thousands of hunks far away": (
            far,
            "--- a/f\n+++ b/f\n" + "".join(f"@@ -1 +1 @@\n-k{i}\n+q\n" for i in range(4500)),
        ),
        "thousands of context lines": (prose, envelope("@@ line\n" * 11_000 + "-x\n")),
        "one endless line": (b"a" * 10_000_000, envelope("-" + "a" * 100_000 + "b\n")),
    }
    return [
        row(f"hostile: {name}", best(ours({"f": data}, text), rounds=2), 1000, 1.0)
        for name, (data, text) in cases.items()
    ]


def envelope(lines: str) -> str:
    return f"*** Begin Patch\n*** Update File: f\n@@\n{lines}+c\n*** End Patch\n"
