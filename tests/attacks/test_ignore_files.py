"""Tries ignore files that could block or overload a search: the search ends, and its answer names the files."""

import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from handrail import Workspace
from handrail.kernel.search import rg_process
from handrail.kernel.search.searcher import Searcher
from handrail.model.limits import Limits
from handrail.ops.search.scope import SearchRequest

NAMED = "skipped {}: not a regular file, or too long for an ignore file"
NEEDLE = {"pattern": "needle"}
ASKING = [
    ("context", "grep", NEEDLE),
    ("context", "search", {"query": "needle"}),
    ("file", "file.list", {"pattern": "**/*.txt"}),
]


@contextmanager
def opened(root: Path) -> Iterator[int]:
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 << 30)


def many(path: Path) -> None:
    path.write_text("".join(f"**/q*{number}/*.z\n" for number in range(50_000)))


def braces(path: Path) -> None:
    path.write_text("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}\n" * 1000)


def link_to_a_fifo(path: Path) -> None:
    os.mkfifo(path.parent / "pipe")
    path.symlink_to("pipe")


@pytest.mark.parametrize("name", [".rgignore", ".ignore", ".gitignore", ".git/info/exclude"])
@pytest.mark.parametrize("make", [huge, os.mkfifo, many])
def test_unusable_ignore_file_is_named_and_search_answers(root: Path, make: Callable[[Path], None], name: str) -> None:
    (root / "a.txt").write_text("needle\n")
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    make(root / name)
    with Workspace(str(root)) as workspace:
        result = workspace.call("file", "file.search", NEEDLE)
        listed = workspace.call("copilot", "file_search", {"pattern": "**/*.txt"})
    found: Any = result.output
    assert [match["path"] for match in found["matches"]] == ["a.txt"]
    assert result.warnings == [NAMED.format(name)]
    assert listed.warnings == [NAMED.format(name)]


@pytest.mark.parametrize("make", [huge, os.mkfifo, link_to_a_fifo])
def test_unusable_ignore_file_in_subdirectory_does_not_stop_search(root: Path, make: Callable[[Path], None]) -> None:
    (root / "a.txt").write_text("needle\n")
    (root / "sub").mkdir()
    (root / "sub" / "b.txt").write_text("needle\n")
    make(root / "sub" / ".gitignore")
    limits = {"search_silent_seconds": 0.1, "search_memory_bytes": 256 << 20}
    with Workspace(str(root), limits=limits) as workspace:
        for dialect, tool, given in ASKING:
            result = workspace.call(dialect, tool, given)
            assert "sub/b.txt" in str(result.output)
            assert all("reached its time limit" not in said for said in result.warnings)


def test_unusable_ignore_file_with_builtin_search_off_is_an_error(root: Path) -> None:
    os.mkfifo(root / ".gitignore")
    with Workspace(str(root), builtin_search=False) as workspace:
        result = workspace.call("file", "file.search", NEEDLE)
    assert result.error is not None
    assert result.error.code == "ripgrep_not_found"


def test_ignore_rule_with_braces_counts_as_many_rules(root: Path) -> None:
    braces(root / ".gitignore")
    (root / "a.txt").write_text("needle\n")
    with opened(root) as fd:
        result = Searcher(engine="builtin").search(fd, SearchRequest("needle"))
    assert (result.total, result.skipped.rules.names) == (1, [".gitignore"])


def test_ripgrep_runs_with_limits_from_settings(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a.txt").write_text("needle\n")
    seen: list[tuple[int, int]] = []

    def noted(_: int, process: int, *_rest: Any) -> Iterator[bytes]:
        seen.extend(resource.prlimit(process, which) for which in (resource.RLIMIT_AS, resource.RLIMIT_CPU))
        yield from ()

    monkeypatch.setattr(rg_process, "_chunks_at_intervals", noted)
    limits = Limits(search_memory_bytes=123 << 20, search_seconds=9)
    with opened(root) as fd:
        Searcher(limits, engine="ripgrep").search(fd, SearchRequest("needle", count_searched=True))
    seconds = 10 * (os.cpu_count() or 1)
    assert seen == [(123 << 20, 123 << 20), (seconds, seconds)]


SEARCHING = """
import os, sys
from handrail.kernel.search import rg_process
from handrail.ops.search.scope import SearchRequest
from handrail.kernel.search.searcher import Searcher
from handrail.model.limits import Limits

real = rg_process._chunks_at_intervals
def noted(fd, pid, *rest):
    print(pid, flush=True)
    yield from real(fd, pid, *rest)
rg_process._chunks_at_intervals = noted
fd = os.open(sys.argv[1], os.O_RDONLY)
limits = Limits(search_silent_seconds=600, search_seconds=600)
Searcher(limits, engine="ripgrep").search(fd, SearchRequest("needle", count_searched=True))
"""


def test_hanging_ripgrep_dies_with_its_parent(root: Path) -> None:
    (root / "sub").mkdir()
    os.mkfifo(root / "sub" / ".gitignore")
    with subprocess.Popen([sys.executable, "-c", SEARCHING, str(root)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    poll = select.poll()
    poll.register(child, select.POLLIN)
    ended = poll.poll(60_000)
    if not ended:
        signal.pidfd_send_signal(child, signal.SIGKILL)
    os.close(child)
    assert ended


def test_ripgrep_answers_under_lower_cpu_limit_of_user(root: Path) -> None:
    (root / "a.txt").write_text("needle\n")
    asked = """
import sys
from handrail import Workspace
with Workspace(sys.argv[1]) as workspace:
    print(workspace.call("context", "grep", {"pattern": "needle"}).metadata["engine"])
"""
    powerless = ["setpriv", "--bounding-set=-all"] if os.geteuid() == 0 else []
    argv = ["sh", "-c", 'ulimit -t 20; exec "$@"', "sh", *powerless, sys.executable, "-c", asked, str(root)]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "ripgrep\n"
