"""What memory costs: edits with the journal and without, the last page of a long history, a watched command."""

import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from bench.measure import Row, compare, row, show
from handrail import Workspace
from handrail.kernel.git.watch import GitChecks
from handrail.kernel.host.state_dir import State
from handrail.kernel.journal.journal import ChangedPath, Journal, JournalEntry, KeptNode, Origin, encode, journal_of

FILES = 50_000
CALLS = 100_000
FIRST = """
import sys, time
from handrail import Workspace
with Workspace(sys.argv[1], approve="auto") as workspace:
    began = time.perf_counter()
    assert workspace.call("codex", "shell", {"command": "true"}).success
    print((time.perf_counter() - began) * 1000)
"""
BARE = """
import os, sys, time
began, left = time.perf_counter(), 5000
with open(sys.argv[2], "wb") as kept:
    for directory, _, names in os.walk(sys.argv[1]):
        for name in names:
            os.lstat(f"{directory}/{name}")
            if left:
                left -= 1
                with open(f"{directory}/{name}", "rb", buffering=0) as file:
                    kept.write(file.read())
print((time.perf_counter() - began) * 1000)
"""


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home:
        os.environ["HANDRAIL_STATE_DIR"] = f"{home}/state"
        os.environ["HANDRAIL_CONFIG_DIR"] = f"{home}/config"
        edits = [*_edits(Path(home)), *_history(Path(home))]
        return [*edits, _command(Path(home)), *_first_commands(Path(home))]


def _edits(home: Path) -> list[Row]:
    rows = []
    for size, name in ((4_000, "4 KB"), (100_000, "100 KB")):
        with _editing(home / f"on{size}", size, "on") as on, _editing(home / f"off{size}", size, "off") as off:
            row = compare(f"file.patch of {name} with journal / without", _patcher(on), _patcher(off), 1.5, rounds=60)
            rows.append(row)
    return rows


def _editing(root: Path, size: int, journal: Any) -> Workspace:
    root.mkdir()
    (root / "file").write_text("".join(f"line {n:05} {'x' * 87}\n" for n in range(size // 99)))
    return Workspace(str(root), approve="auto", journal=journal)


def _patcher(workspace: Workspace) -> Callable[[], None]:
    """Every edit makes a content that was never there before, so that nothing is saved by having it already."""
    tools, turns = workspace.tools("file"), itertools.count()

    def patch() -> None:
        turn = next(turns)
        old = "line 00020 " if turn == 0 else f"edit {turn - 1:05} "
        edit = {"path": "file", "patches": [{"find": old, "replace": f"edit {turn:05} "}]}
        result = tools.call("file.patch", edit)
        assert result.success, result

    return patch


def _history(home: Path) -> list[Row]:
    root = home / "history"
    root.mkdir()
    journal = journal_of(State(str(root)))
    _fill(journal)

    def start() -> None:
        subprocess.run([sys.executable, "-c", "pass"], check=True)

    def last() -> None:
        assert len(list(islice(journal.backwards(), 50))) == 50

    def one() -> None:
        assert journal.entry(CALLS // 3) is not None

    def click() -> None:
        subprocess.run([sys.executable, "-c", "import click"], check=True)

    def listing() -> None:
        subprocess.run([sys.executable, "-P", "-m", "handrail", "history", "--root", root], stdout=-3, check=True)

    return [
        compare("last 50 of 100 000 entries / an empty Python start", last, start, 2),
        compare("any one of 100 000 entries / an empty Python start", one, start, 2),
        compare("handrail history of 100 000 / import click", listing, click, 3),
    ]


def _fill(journal: Journal) -> None:
    node = KeptNode("file", "0" * 40, 0o644)
    with open(journal.path, "wb") as file:
        for n in range(1, CALLS + 1):
            origin = Origin("commit", "20260101-000000-abcdef", n, None, "file", "file.patch", "policy auto")
            file.write(
                encode(
                    JournalEntry(n, 1.7e9 + n, origin, (ChangedPath(f"src/module{n % 100}.py", node, node, (3, 1)),))
                )
            )


def _command(home: Path) -> Row:
    root = home / "large"
    for n in range(FILES):
        path = root / f"d{n // 1000:02}" / f"e{n // 50 % 20:02}" / f"f{n % 50:02}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"x = {n}\n")
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "core.fsmonitor=false"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], check=True)
    with Workspace(str(root), approve="auto") as workspace:
        shadow, told = workspace._services.command_changes, list[object]()

        def around() -> None:
            with shadow.around(Origin("command"), told.append, [], GitChecks(None)):
                pass

        def status() -> None:
            subprocess.run([*git, "status", "--porcelain"], check=True, stdout=-3)

        return compare("scan around a command, 50 000 files / git status", around, status, 1.5)


def _first_commands(home: Path) -> list[Row]:
    """The first command of an open workspace, which keeps the contents of its files, against a bare loop that does."""
    rows = []
    for count, size in ((5_000, 13_000), (50_000, 2_000)):
        root = home / f"tree{count}"
        _plant(root, count, size)
        ours, bare, names = [], [], 0
        for turn in range(5):
            state = home / f"state{count}-{turn}"
            ours.append(_milliseconds(FIRST, root, state))
            bare.append(_milliseconds(BARE, root, home / "bare"))
            names = max(names, sum(len(files) for _, _, files in os.walk(state)))
        name = f"first command, {count} files"
        rows.append(
            row(f"{name} / stat all, keep 5 000 in a file", statistics.median(ours), statistics.median(bare), 2.5)
        )
        rows.append(row(f"{name}: files of state / 10", names, 10, 1))
    return rows


def _plant(root: Path, count: int, size: int) -> None:
    text = random.Random(count).randbytes(1 << 16).hex().encode() * 2
    for n in range(count):
        path = root / f"d{n // 500:02}" / f"e{n // 25 % 20:02}" / f"f{n % 25:02}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d\n" % n + text[n : n + size])


def _milliseconds(code: str, root: Path, place: Path) -> float:
    """Return what a new process says that it took."""
    told = subprocess.run(
        [sys.executable, "-c", code, str(root), str(place)],
        env={**os.environ, "HANDRAIL_STATE_DIR": str(place)},
        check=True,
        capture_output=True,
    )
    return float(told.stdout)


if __name__ == "__main__":
    show("Journal", run())
