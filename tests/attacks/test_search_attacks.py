"""Tries patterns, trees and races that could block or flood a search or lead it outside: it ends with an answer."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attacks.swapper import swapping
from support.searchers import KINDS, searcher_of, stays_in_namespace

from handrail.kernel.sandbox.helpers import landlock_exec
from handrail.kernel.search.searcher import Searcher
from handrail.model.faults import Cancelled
from handrail.model.limits import Limits
from handrail.ops.search.results import SearchResult
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest

ROOM = "/dev/shm" if os.path.isdir("/dev/shm") else None
LONG = bool(os.environ.get("HANDRAIL_LONG"))


@pytest.fixture(params=KINDS)
def engine(request: pytest.FixtureRequest) -> Any:
    return request.param


@contextmanager
def opened(place: str | Path) -> Iterator[int]:
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


@pytest.fixture
def room() -> Iterator[str]:
    with tempfile.TemporaryDirectory(dir=ROOM, prefix="handrail-test-") as place:
        yield place


EVIL = [
    "(a+)+$",
    "(a|aa)+$",
    "(.*a){20}b$",
    "((a*)*)*b$",
    "(a|a?)+b$",
    "(?=a)(a+)+$",
    "(?=a)(a|aa)+$",
    r"(a+)+\1$",
    "(" + "|".join(f"word{number}" for number in range(1500)) + ")+$",
    "a{0,100}" * 30 + "b$",
]


@pytest.mark.parametrize("pattern", EVIL)
def test_slow_pattern_abandons_one_file_and_search_completes(engine: Any, room: str, pattern: str) -> None:
    Path(room, "evil").write_text("a" * 1_000_000 + "c\n")
    Path(room, "plain").write_text("word1\n")
    searcher = searcher_of(engine, Limits(regex_seconds=0.3, search_seconds=30))
    with opened(room) as fd:
        result = searcher.search(fd, SearchRequest(pattern))
    assert result.complete
    assert result.skipped.abandoned.names in ([], ["evil"])
    assert [match.path for match in result.matches] in ([], ["plain"])


def test_directory_with_100000_files_is_counted_completely(engine: Any, room: str) -> None:
    with opened(room) as fd:
        for number in range(100_000):
            os.close(os.open(f"{number:06}.txt", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        os.write(os.open("099999.txt", os.O_WRONLY, dir_fd=fd), b"needle\n")
        searcher = searcher_of(engine)
        files = searcher.find(fd, FindRequest(Scope(include=("*.txt",)), limit=2))
        lines = searcher.search(fd, SearchRequest("needle"))
    assert (files.files, files.total) == (["000000.txt", "000001.txt"], 100_000)
    assert [(match.path, match.line) for match in lines.matches] == [("099999.txt", 1)]


def test_tree_of_depth_300_is_searched_completely(engine: Any, room: str) -> None:
    path = "/".join(["d"] * 300)
    os.makedirs(f"{room}/{path}")
    Path(room, path, "leaf").write_text("needle")
    searcher = searcher_of(engine)
    with opened(room) as fd:
        assert [match.path for match in searcher.search(fd, SearchRequest("needle")).matches] == [f"{path}/leaf"]
        shallow = searcher.search(fd, SearchRequest("needle", scope=Scope(max_depth=10)))
    assert (shallow.total, shallow.skipped.too_deep.names) == (0, ["/".join(["d"] * 10)])


def test_sparse_file_of_five_gigabytes_is_skipped(engine: Any, room: str) -> None:
    with open(f"{room}/sparse", "wb") as file:
        file.write(b"needle\n")
        file.truncate(5 << 30)
    Path(room, "text").write_text("needle")
    searcher = searcher_of(engine)
    with opened(room) as fd:
        assert [match.path for match in searcher.search(fd, SearchRequest("needle")).matches] == ["text"]
        limited = searcher.search(fd, SearchRequest("needle", scope=Scope(max_file_bytes=1 << 20)))
    assert limited.skipped.too_large.names == ["sparse"]


def test_growing_file_does_not_block_search(engine: Any, room: str) -> None:
    path, stop = f"{room}/growing", threading.Event()
    Path(path).write_text("needle\n")

    def grow() -> None:
        with open(path, "ab", buffering=0) as file:
            while not stop.is_set() and file.tell() < 200 << 20:
                file.write(b"more and more\n" * 1000)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        with opened(room) as fd:
            result = searcher_of(engine, Limits(search_seconds=10)).search(fd, SearchRequest("needle"))
    finally:
        stop.set()
        writer.join()
    assert (result.total, result.complete) in ((1, True), (0, False))


MEASURED = """
import os, re, sys
from handrail.ops.search.scope import SearchRequest
from handrail.kernel.search.searcher import Searcher
fd = os.open(sys.argv[1], os.O_RDONLY)
result = Searcher(engine=sys.argv[2]).search(fd, SearchRequest("hit", limit=50))
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
print(result.total, len(result.matches), int(peak[1]) // 1024)
"""


@pytest.mark.parametrize(("kind", "lines"), [("ripgrep", 10_000_000), ("builtin", 2_000_000)])
def test_search_memory_does_not_grow_with_number_of_matches(room: str, kind: str, lines: int) -> None:
    for number in range(10):
        Path(room, f"{number}").write_bytes(b"hit\n" * (lines // 10))
    printed = subprocess.run(
        [sys.executable, "-c", MEASURED, room, kind], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout  # fmt: skip
    total, shown, megabytes = map(int, printed.split())
    assert (total, shown) == (lines, 50)
    assert megabytes < 100


class Started:
    """Records each ripgrep that a search starts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.first = threading.Event()
        self.processes: list[Any] = []
        self._start = landlock_exec.start
        monkeypatch.setattr(landlock_exec, "start", self)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        process = self._start(*arguments, **options)
        self.processes.append(process)
        self.first.set()
        return process


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """Make a tree in which ripgrep waits for ever: it reads an ignore file that is a FIFO."""
    (tmp_path / "sub").mkdir()
    os.mkfifo(tmp_path / "sub" / ".gitignore")
    return tmp_path


def test_cancelled_search_leaves_no_process(endless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, cancel = Started(monkeypatch), threading.Event()

    def soon() -> None:
        started.first.wait()
        cancel.set()

    threading.Thread(target=soon, daemon=True).start()
    limits = Limits(search_silent_seconds=600, search_seconds=600)
    with opened(endless) as fd, pytest.raises(Cancelled):
        Searcher(limits, engine="ripgrep").search(fd, SearchRequest("x", count_searched=True), cancel)
    assert [process.returncode for process in started.processes] == [-signal.SIGKILL]


def test_search_deadline_kills_ripgrep_and_result_is_incomplete(endless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch)
    limits = Limits(search_silent_seconds=600, search_seconds=1)
    with opened(endless) as fd:
        result = Searcher(limits, engine="ripgrep").search(fd, SearchRequest("x", count_searched=True))
    assert not result.complete
    assert [process.returncode for process in started.processes] == [-signal.SIGKILL]


@pytest.mark.parametrize("landlock", [True, False])
def test_search_shows_nothing_outside_while_names_are_exchanged(
    engine: Any, landlock: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if landlock and not landlock_exec.available():
        pytest.skip("no Landlock here")
    monkeypatch.setattr(landlock_exec, "available", lambda: landlock)
    searcher = searcher_of(engine)
    root, outside = tmp_path / "root", tmp_path / "outside"
    for place in (root / "place", outside):
        place.mkdir(parents=True)
    for number in range(20):
        (root / "place" / f"{number}").write_text("inside needle\n")
        (outside / f"{number}").write_text("outside needle\n")
    (root / "trap").symlink_to(outside)
    seen: set[str] = set()

    def look(fd: int) -> SearchResult:
        result = searcher.search(fd, SearchRequest("needle", context=1))
        seen.update(match.content for match in result.matches)
        return result

    with opened(root) as fd, swapping(str(root), ("place", "trap")) as swapper:
        calls = 0
        while calls < (2000 if LONG else 60) or swapper.swaps < 1000:
            look(fd)
            calls += 1
    assert seen <= {"inside needle"}
    assert engine != "namespace" or stays_in_namespace(searcher)
