"""`make bench-growth`: how the cost of Handrail's operations grows with files, sizes, matches and sessions.

`--million` adds a tree of a million files, which takes some minutes and 4 GB to make.
"""

import argparse
import itertools
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measure import settle
from bench.patch import own_homes
from bench.results import load, save
from bench.stats import exponent
from handrail import Workspace

ROUNDS = 5
CONSTANT, LINEAR = 0, 1
TOLERANCE = 0.2
TREE = (1_000, 10_000, 100_000)
MEGABYTES = (1, 10, 100, 1_000, 2_000)
MATCHES = (1, 10, 100, 1_000, 10_000)
SESSIONS = (1, 5, 20, 50, 200)
Act = tuple[str, int, Callable[[], object]]
"""The name of an operation, how it may grow, and the operation."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true", help="also a million files")
    parser.add_argument("--only", nargs="*", help="files, size, matches, sessions")
    options = parser.parse_args()
    tree = (*TREE, 1_000_000) if options.million else TREE
    kinds: dict[str, tuple[str, str, Iterable[int], Callable[[int], Any]]] = {
        "files": ("Operations in a tree of many files", "files", tree, files),
        "size": ("Operations on a large file", "MB", MEGABYTES, size),
        "matches": ("Operations with many matches", "matches", MATCHES, matches),
        "sessions": ("Calls by many sessions at once", "sessions", SESSIONS, sessions),
    }
    results = {
        key: {"title": title, "x": x} | grown(title, sizes, place)
        for key, (title, x, sizes, place) in kinds.items()
        if not options.only or key in options.only
    }
    kept = load("growth").get("kinds", {})
    print(f"\nwritten to {save('growth', {'kinds': kept | results})}")


def grown(title: str, sizes: Iterable[int], place: Callable[[int], Any]) -> dict[str, Any]:
    points: dict[str, list[tuple[float, float]]] = {}
    expected: dict[str, int] = {}
    for many in sizes:
        with own_homes(), place(many) as acts:
            for name, power, act in acts:
                expected[name] = power
                points.setdefault(name, []).append((many, median_ms(act)))
    print(f"\n{title}")
    series = {}
    for name, measured in points.items():
        slope = exponent(measured)
        series[name] = {"expected": expected[name], "exponent": slope, "points": measured}
        shown = "  ".join(f"{ms:10.2f}" for _, ms in measured)
        mark = "  worse than it should be" if slope > expected[name] + TOLERANCE else ""
        print(f"  {name:40} {slope:5.2f} (at most {expected[name]}) {shown}{mark}", flush=True)
    return {"series": series}


def median_ms(act: Callable[[], object]) -> float:
    act()
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        act()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def caller(workspace: Workspace) -> Callable[..., Any]:
    def call(dialect: str, tool: str, **arguments: Any) -> Any:
        result = workspace.call(dialect, tool, arguments)
        assert result.success, result
        return result

    return call


@contextmanager
def files(many: int) -> Iterator[list[Act]]:
    """Trees are made once and kept for the next run."""
    root = Path(tempfile.gettempdir(), f"handrail-bench-growth-{many}")
    _make_tree(root, many)
    with Workspace(str(root), approve="auto") as workspace:
        call, turn = caller(workspace), itertools.count()
        yield [
            ("open the workspace", CONSTANT, lambda: Workspace(str(root), approve="auto").close()),
            ("read a small file", CONSTANT, lambda: call("file", "file.read", path="d0/f0.py")),
            (
                "write a small file",
                CONSTANT,
                lambda: call("file", "file.write", path="own", content=f"{next(turn)}"),
            ),
            ("glob **/*.py", LINEAR, lambda: call("copilot", "file_search", pattern="**/*.py")),
            ("search a rare literal", LINEAR, lambda: call("file", "file.search", pattern="needle 7c41")),
            ("search, first 100", CONSTANT, lambda: call("file", "file.search", pattern="value", max_results=100)),
            ("first command of a session", LINEAR, lambda: _first_command(str(root))),
            ("shell true, session warm", CONSTANT, lambda: call("codex", "shell", command="true")),
        ]


def _make_tree(root: Path, many: int) -> None:
    """100 files a directory, 100 directories a directory."""
    if Path(f"{root}.ready").exists():
        return
    shutil.rmtree(root, ignore_errors=True)
    for number in range(many):
        above = number // 100
        directory = f"{root}/d{above}" if above < 100 else f"{root}/e{above // 100}/d{above}"
        if number % 100 == 0:
            os.makedirs(directory)
        with open(f"{directory}/f{number}.{'py' if number % 3 == 0 else 'txt'}", "w", encoding="utf-8") as file:
            file.write(f"value = {number}\n" + ("needle 7c41\n" if number == many // 2 else ""))
    Path(f"{root}.ready").touch()


def _first_command(root: str) -> None:
    with Workspace(root, approve="auto") as workspace:
        caller(workspace)("codex", "shell", command="true")


@contextmanager
def size(megabytes: int) -> Iterator[list[Act]]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as root, Workspace(root, approve="auto") as workspace:
        line = "line {:08} of a large file, and some more text to fill it\n"
        lines = megabytes * 1_000_000 // len(line.format(0))
        with open(f"{root}/large.txt", "w", encoding="utf-8") as file:
            file.writelines(line.format(number) for number in range(lines))
        call, turn = caller(workspace), itertools.count()

        def page(offset: int, *, touched: bool = False) -> Any:
            if touched:
                os.utime(f"{root}/large.txt")
            else:
                settle(f"{root}/large.txt")
            return call("file", "file.read", path="large.txt", offset=offset, limit=50)

        def edit() -> None:
            old, new = ("line", "LINE") if next(turn) % 2 == 0 else ("LINE", "line")
            call(
                "file",
                "file.patch",
                path="large.txt",
                patches=[{"find": f"{old} 00000500", "replace": f"{new} 00000500"}],
            )

        acts: list[Act] = [
            ("page at the start, file not seen before", LINEAR, lambda: page(1, touched=True)),
            ("page at the end, file not seen before", LINEAR, lambda: page(lines - 60, touched=True)),
            ("page at the end, again", CONSTANT, lambda: page(lines - 60)),
            ("search a rare literal in it", LINEAR, lambda: call("file", "file.search", pattern=f"{lines - 9:08}")),
        ]
        yield [*acts, ("edit one line", LINEAR, edit)] if megabytes <= 10 else acts


@contextmanager
def matches(many: int) -> Iterator[list[Act]]:
    """A thousand files of a hundred lines, of which so many hold the word."""
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as root, Workspace(root, approve="auto") as workspace:
        for number in range(1000):
            words = ("needle" if number * 100 + n < many else "nothing" for n in range(100))
            Path(root, f"f{number}.txt").write_text("".join(f"{word} {n}\n" for n, word in enumerate(words)))
        text = "".join(f"{'one' if n < many else 'another'} {n}\n" for n in range(10_000))
        Path(root, "replaced").write_text(text)
        call, turns = caller(workspace), itertools.cycle([("one ", "two "), ("two ", "one ")])

        def replace() -> None:
            old, new = next(turns)
            edit = {"old_string": old, "new_string": new, "expected_replacements": many}
            call("gemini", "replace", file_path=f"{root}/replaced", **edit)

        yield [
            ("search, all shown", LINEAR, lambda: call("file", "file.search", pattern="needle", max_results=10_000)),
            (
                "search, 100 shown, exact total",
                LINEAR,
                lambda: call("context", "grep", pattern="needle", max_results=100),
            ),
            ("replace them all in one file", LINEAR, replace),
        ]


@contextmanager
def sessions(many: int) -> Iterator[list[Act]]:
    """The time of 200 calls, made by so many sessions of one workspace at the same time."""
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as root, Workspace(root, approve="auto") as workspace:
        opened = [workspace.session() for _ in range(many)]
        for number in range(many):
            Path(root, f"own{number}.txt").write_text("some text\n")
        with ThreadPoolExecutor(many) as pool:
            yield [
                ("open and close a session", CONSTANT, lambda: workspace.session().close()),
                ("200 reads, by all together", CONSTANT, _Each(pool, opened, "file.read")),
                ("200 writes, by all together", CONSTANT, _Each(pool, opened, "file.write")),
            ]
        for session in opened:
            session.close()


class _Each:
    """All sessions call at once, and together as often as one would alone."""

    CALLS = 200

    def __init__(self, pool: ThreadPoolExecutor, opened: list[Any], tool: str) -> None:
        self._pool, self._opened, self._tool = pool, opened, tool
        self._turns = itertools.count()

    def __call__(self) -> None:
        list(self._pool.map(self._calls, range(len(self._opened))))

    def _calls(self, number: int) -> None:
        tools = self._opened[number].tools("file")
        for _ in range(max(self.CALLS // len(self._opened), 1)):
            arguments = {"path": f"own{number}.txt"}
            if self._tool == "file.write":
                arguments["content"] = f"{next(self._turns)}\n"
            assert tools.call(self._tool, arguments).success


if __name__ == "__main__":
    main()
