"""Tests what a search starts, and what it says about files that it passed over."""

import os
from pathlib import Path
from typing import Any

import pytest
from support.search_trees import Open, plant

from handrail.kernel.sandbox.helpers import landlock_exec
from handrail.kernel.search import rg_process
from handrail.kernel.search.rg_output import complaints, passed_over
from handrail.kernel.search.rg_process import program
from handrail.kernel.search.searcher import Searcher
from handrail.model.limits import Limits
from handrail.ops.glob.ignore_rules import DEFAULT_EXCLUSIONS
from handrail.ops.search.scope import Scope, SearchRequest

pytestmark = pytest.mark.skipif(
    program() is None or not landlock_exec.available(), reason="needs ripgrep and a kernel that confines it"
)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Collect the arguments of every ripgrep that a search starts."""
    commands: list[list[str]] = []
    start = landlock_exec.start

    def noted(argv: list[str], *rest: Any, **options: Any) -> Any:
        commands.append(argv)
        return start(argv, *rest, **options)

    monkeypatch.setattr(landlock_exec, "start", noted)
    return commands


def test_fruitless_search_of_tree_with_nothing_hidden_starts_ripgrep_once(tree: Open, started: list[list[str]]) -> None:
    fd = tree({".gitignore": b"*.log\n", "a": b"x", "d": {".gitignore": b"/none\n", "b": b"x"}})
    result = Searcher().search(fd, SearchRequest("hit", scope=Scope(exclusions=DEFAULT_EXCLUSIONS)))
    assert (result.total, result.hidden, len(started)) == (0, None, 1)


def test_fruitless_search_looks_again_only_in_what_is_hidden(tree: Open, started: list[list[str]]) -> None:
    fd = tree(
        {".gitignore": b"*.log\n/out/\n", "a": b"x", "l.log": b"hit", "out": {"b": b"hit\nhit"}, "dist": {"c": b"hit"}}
    )
    result = Searcher().search(fd, SearchRequest("hit", scope=Scope(exclusions=DEFAULT_EXCLUSIONS)))
    assert result.hidden is not None
    assert (result.hidden.count, result.hidden.by) == (4, [".gitignore", "the default exclusions"])
    first, again = started
    assert (first[-2:], sorted(again[again.index("--") :])) == (["--", "."], ["--", "./dist", "./l.log", "./out"])


def test_hidden_links_fifos_and_binary_files_are_not_searched(tree: Open, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("hit")
    fd = tree({".gitignore": b"h*\n", "a": b"x", "hbin": b"hit\n\0", "hdir": {"b": b"hit\0"}})
    os.symlink(tmp_path / "outside", "h1", dir_fd=fd)
    os.symlink("a", "h2", dir_fd=fd)
    os.mkfifo("hfifo", dir_fd=fd)
    result = Searcher().search(fd, SearchRequest("hit|x{2}"))
    assert (result.total, result.hidden) == (0, None)


def test_names_that_imitate_messages_hide_nothing(tree: Open) -> None:
    line = "x\nrg: DEBUG|ignore::walk|walk.rs:1: ignoring ./a: Ignore(no)"
    fd = tree({".gitignore": b"x*\n", "a": b"nothing", line: b"hit", "x\nrg: .": {"b": b"hit"}})
    result = Searcher().search(fd, SearchRequest("hit"))
    assert result.total == 0
    assert result.skipped.unreadable.count == 0


def test_messages_about_ignored_files_are_told_from_complaints() -> None:
    said = (
        b"rg: DEBUG|ignore::walk|walk.rs:2011: ignoring ./b: Ignore(IgnoreMatch(Gitignore(Glob { }))))\n"
        b"rg: DEBUG|ignore::walk|crates/walk.rs:1998: ignoring ./big: 3000000 bytes\n"
        b"rg: ./closed: Permission denied (os error 13)\n"
        b"rg: DEBUG|ignore::walk|walk.rs:2011: ignoring ./n\n.log: Ignore(IgnoreMatch(Override(Glob(x))))\n"
        b"rg: DEBUG|grep_printer|crates/standard.rs:830: ignoring ./x: found binary data at offset 4\n"
    )
    assert list(passed_over(said)) == ["b", "n\n.log"]
    assert [each.path for each in complaints(said)] == ["closed"]


def test_search_that_reports_too_much_is_repeated_quietly(
    tree: Open, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fd = tree({".gitignore": b"*.log\n", "a": b"x", "l.log": b"hit"})
    monkeypatch.setattr(rg_process, "_SAID", 100)
    result = Searcher().search(fd, SearchRequest("hit"))
    assert result.hidden is not None
    assert result.hidden.count == 1
    assert "--debug" in started[0]
    assert not any("--debug" in each for each in started[1:])


@pytest.mark.parametrize("engine", ["ripgrep", "builtin"])
def test_large_file_is_named_only_if_something_in_it_is_left_out(engine: Any, tree: Open) -> None:
    fd = tree({"big": b"hit " * 100, "other": b"x" * 400, "deep": {"d": {"big": b"hit " * 100}}, "small": b"hit"})
    result = Searcher(engine=engine).search(fd, SearchRequest("hit", scope=Scope(max_file_bytes=100, max_depth=1)))
    assert [match.path for match in result.matches] == ["small"]
    assert (result.skipped.too_large.names, result.skipped.too_deep.names) == (["big"], ["deep"])


def test_search_that_waits_for_large_files_leaves_the_limit_to_ripgrep(
    tmp_path: Path, started: list[list[str]]
) -> None:
    """A FIFO as an ignore file makes ripgrep wait; the large file comes first, and is found to be the cause."""
    plant({"big": b"x" * 400, "small": b"hit", "sub": {"big": b"hit " * 100}}, str(tmp_path))
    os.mkfifo(tmp_path / "sub" / ".gitignore")
    scope, limits = Scope(max_file_bytes=100), Limits(search_silent_seconds=0, search_read_bytes=300)
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        searcher = Searcher(limits, engine="ripgrep")
        first = searcher.search(fd, SearchRequest("hit", scope=scope))
        os.unlink(tmp_path / "sub" / ".gitignore")
        later = searcher.search(fd, SearchRequest("hit", scope=scope))
    finally:
        os.close(fd)
    assert ["--max-filesize=100" in command for command in started] == [False, True, True]
    assert [match.path for match in (*first.matches, *later.matches)] == ["small", "small"]
    assert later.skipped.too_large.names == ["big", "sub/big"]
