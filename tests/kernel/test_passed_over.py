"""Tests what a search starts, and what it says about files that it passed over."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.search_trees import Open

from handrail.kernel.sandbox.helpers import landlock_exec
from handrail.kernel.search import rg_process
from handrail.kernel.search.rg_output import complaints, passed_over
from handrail.kernel.search.rg_process import program
from handrail.kernel.search.searcher import Searcher
from handrail.model.limits import Limits
from handrail.ops.glob.ignore_rules import DEFAULT_EXCLUSIONS
from handrail.ops.search.results import SearchResult
from handrail.ops.search.scope import Scope, SearchRequest

pytestmark = pytest.mark.skipif(
    program() is None or not landlock_exec.available(), reason="needs ripgrep and a kernel that confines it"
)

PATIENT = Limits(hidden_seconds=300, search_seconds=600)
"""A busy machine may be slow."""


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


def places(argv: list[str]) -> list[str]:
    """Return where ripgrep searches. After a search that took long, the command that confines it stands before it."""
    return sorted(argv[len(argv) - argv[::-1].index("--") :])


def test_fruitless_search_of_tree_with_nothing_hidden_starts_ripgrep_once(tree: Open, started: list[list[str]]) -> None:
    fd = tree({".gitignore": b"*.log\n", "a": b"x", "d": {".gitignore": b"/none\n", "b": b"x"}})
    result = Searcher(PATIENT).search(fd, SearchRequest("hit", scope=Scope(exclusions=DEFAULT_EXCLUSIONS)))
    assert (result.total, result.hidden, len(started)) == (0, None, 1)


def test_fruitless_search_looks_again_only_in_what_is_hidden(tree: Open, started: list[list[str]]) -> None:
    fd = tree(
        {".gitignore": b"*.log\n/out/\n", "a": b"x", "l.log": b"hit", "out": {"b": b"hit\nhit"}, "dist": {"c": b"hit"}}
    )
    result = Searcher(PATIENT).search(fd, SearchRequest("hit", scope=Scope(exclusions=DEFAULT_EXCLUSIONS)))
    assert result.hidden is not None
    assert (result.hidden.count, result.hidden.by) == (4, [".gitignore", "the default exclusions"])
    first, again = started
    assert (places(first), places(again)) == (["."], ["./dist", "./l.log", "./out"])


def test_hidden_links_fifos_and_binary_files_are_not_searched(tree: Open, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("hit")
    fd = tree({".gitignore": b"h*\n", "a": b"x", "hbin": b"hit\n\0", "hdir": {"b": b"hit\0"}})
    os.symlink(tmp_path / "outside", "h1", dir_fd=fd)
    os.symlink("a", "h2", dir_fd=fd)
    os.mkfifo("hfifo", dir_fd=fd)
    result = Searcher(PATIENT).search(fd, SearchRequest("hit|x{2}"))
    assert (result.total, result.hidden) == (0, None)


def test_names_that_imitate_messages_hide_nothing(tree: Open) -> None:
    line = "x\nrg: DEBUG|ignore::walk|walk.rs:1: ignoring ./a: Ignore(no)"
    fd = tree({".gitignore": b"x*\n", "a": b"nothing", line: b"hit", "x\nrg: .": {"b": b"hit"}})
    result = Searcher(PATIENT).search(fd, SearchRequest("hit"))
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
    result = Searcher(PATIENT).search(fd, SearchRequest("hit"))
    assert result.hidden is not None
    assert result.hidden.count == 1
    assert "--debug" in started[0]
    assert not any("--debug" in each for each in started[1:])


@pytest.fixture
def limited() -> SearchRequest:
    return SearchRequest("hit", scope=Scope(max_file_bytes=100, max_depth=2))


def named(result: SearchResult) -> tuple[list[str], list[str]]:
    return result.skipped.too_large.names, result.skipped.too_deep.names


def test_later_search_names_the_same_files_without_limits_for_ripgrep(
    tree: Open, started: list[list[str]], limited: SearchRequest
) -> None:
    fd = tree({"big": b"hit " * 99, "other": b"x" * 400, "d": {"d": {"a": b"hit"}, "e": {"b": b""}}, "small": b"hit"})
    searcher = Searcher(PATIENT)
    first, later = searcher.search(fd, limited), searcher.search(fd, limited)
    sized = ["--max-filesize=100" in command for command in started]
    assert sized == [True, False]
    assert named(first) == named(later) == (["big", "other"], ["d/d", "d/e"])
    assert [match.path for match in later.matches] == ["small"]


def test_later_search_names_what_is_new_and_nothing_that_is_gone(tree: Open, limited: SearchRequest) -> None:
    fd = tree({"big": b"x" * 400, "gone": b"x" * 400, "shrunk": b"x" * 400, "d": {"d": {}, "e": {}}, "grown": b"hit"})
    searcher = Searcher(PATIENT)
    searcher.search(fd, limited)
    at = Path(f"/proc/self/fd/{fd}")
    (at / "gone").unlink()
    (at / "shrunk").write_text("hit")
    (at / "grown").write_text("hit " * 99)
    (at / "d/e").rmdir()
    (at / "d/f").mkdir()
    (at / "d/f/new").write_text("hit")
    later = searcher.search(fd, limited)
    assert named(later) == (["big", "grown"], ["d/d", "d/f"])
    assert [match.path for match in later.matches] == ["shrunk"]


def test_survey_serves_other_globs_and_ends_with_its_time(
    tree: Open, started: list[list[str]], limited: SearchRequest
) -> None:
    fd = tree({"big.py": b"x" * 400, "big.txt": b"x" * 400, "a.py": b"hit", "a.txt": b"hit"})
    only = limited._replace(scope=replace(limited.scope, include=("*.py",)))
    searcher = Searcher(PATIENT)
    searcher.search(fd, limited)
    later = searcher.search(fd, only)
    assert (named(later)[0], [match.path for match in later.matches]) == (["big.py"], ["a.py"])
    forgetful = Searcher(PATIENT._replace(search_survey_seconds=0))
    for _ in range(2):
        forgetful.search(fd, limited)
    assert ["--max-filesize=100" in command for command in started] == [True, False, True, True]


def test_tree_with_many_bytes_in_large_files_leaves_the_limit_to_ripgrep(
    tree: Open, started: list[list[str]], limited: SearchRequest
) -> None:
    fd = tree({"big": b"", "small": b"hit", "d": {"d": {"a": b"hit"}}})
    os.truncate(f"/proc/self/fd/{fd}/big", 100 << 20)
    searcher = Searcher(PATIENT)
    results = [searcher.search(fd, limited) for _ in range(2)]
    assert ["--max-filesize=100" in command for command in started] == [True, True]
    assert [named(result) for result in results] == [(["big"], ["d/d"])] * 2
    assert [[match.path for match in result.matches] for result in results] == [["small"]] * 2


def test_common_word_in_a_known_tree_is_counted_within_limits(tree: Open, limited: SearchRequest) -> None:
    files = {f"{number:03}": b"hit\n" * 20 for number in range(40)}
    fd = tree({**files, "big": b"hit\n" * 99, "d": {"d": {"a": b"hit\n" * 20}}})
    searcher = Searcher(PATIENT._replace(search_stream_bytes=100))
    first, later = (searcher.search(fd, limited._replace(limit=5)) for _ in range(2))
    assert first == later
    assert (later.total, later.files_matched, len(later.matches)) == (800, 40, 5)
