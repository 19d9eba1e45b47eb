"""Searches by content and by name: one table of cases for both engines."""

import os
from pathlib import Path
from typing import Any

import pytest
from support.ordinary_user import bound_by_permissions
from support.search_trees import Open, found

from handrail.kernel.sandbox.helpers import landlock_exec
from handrail.kernel.search.builtin import BuiltinEngine
from handrail.kernel.search.hidden_files import EXCLUSIONS
from handrail.kernel.search.ranking import RankRequest
from handrail.kernel.search.searcher import EngineName, Searcher
from handrail.model.limits import Limits
from handrail.ops.search.results import Hidden, Match
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest

TEXTS = {
    "b.go": b"type T interface{}\nvar x = ${name}\nfunc f() {\n",
    "a.txt": b"one\ntwo two\nthree\n",
    "c/crlf.txt": b"first\r\nsecond \r\nlast",
    "c/letters.txt": "Straße ÉCOLE naïve\nTASK task\n".encode(),
}
PATTERNS = [
    ("two", [("a.txt", 2, "two two")]),
    ("^t", [("a.txt", 2, "two two"), ("a.txt", 3, "three"), ("b.go", 1, "type T interface{}")]),
    ("e$", [("a.txt", 1, "one"), ("a.txt", 3, "three"), ("c/letters.txt", 1, "Straße ÉCOLE naïve")]),
    (r"\Aone\z", [("a.txt", 1, "one")]),
    ("t$", [("c/crlf.txt", 1, "first"), ("c/crlf.txt", 3, "last")]),
    (r"\s$", [("c/crlf.txt", 2, "second ")]),
    ("interface{}", [("b.go", 1, "type T interface{}")]),
    ("${name}", []),
    (r"\${name}", [("b.go", 2, "var x = ${name}")]),
    ("{$", [("b.go", 3, "func f() {")]),
    ("f() {", []),
    (r"f\(\) {", [("b.go", 3, "func f() {")]),
    (r"(\w+) \1", [("a.txt", 2, "two two")]),
    (r"t(?=h)", [("a.txt", 3, "three")]),
    (r"(?<!o )two", [("a.txt", 2, "two two")]),
    (r"(?!x)[^e]$", [("b.go", 1, "type T interface{}"), ("b.go", 2, "var x = ${name}"), ("b.go", 3, "func f() {"),
                     ("a.txt", 2, "two two"), ("c/crlf.txt", 1, "first"), ("c/crlf.txt", 2, "second "),
                     ("c/crlf.txt", 3, "last"), ("c/letters.txt", 2, "TASK task")]),
    ("(?i)École", [("c/letters.txt", 1, "Straße ÉCOLE naïve")]),
    ("(?i:tas)K", [("c/letters.txt", 2, "TASK task")]),
    (r"na\wve", [("c/letters.txt", 1, "Straße ÉCOLE naïve")]),
    ("[[]|[]]|[&&]", []),
    ("two|first|ÉC", [("a.txt", 2, "two two"), ("c/crlf.txt", 1, "first"), ("c/letters.txt", 1, "Straße ÉCOLE naïve")]),
    ("o{2,}|w{1}", [("a.txt", 2, "two two")]),
    (r"\x{74}wo", [("a.txt", 2, "two two")]),
    ("", [("a.txt", 1, "one"), ("a.txt", 2, "two two"), ("a.txt", 3, "three"), ("b.go", 1, "type T interface{}"),
          ("b.go", 2, "var x = ${name}"), ("b.go", 3, "func f() {"), ("c/crlf.txt", 1, "first"),
          ("c/crlf.txt", 2, "second "), ("c/crlf.txt", 3, "last"), ("c/letters.txt", 1, "Straße ÉCOLE naïve"),
          ("c/letters.txt", 2, "TASK task")]),
    ("--pre=id", []),
    ("-f/etc/passwd", []),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "expected"), PATTERNS)
def test_pattern_finds_its_lines(
    searcher: Searcher, tree: Open, pattern: str, expected: list[tuple[str, int, str]]
) -> None:
    assert found(searcher, tree(TEXTS), pattern) == sorted(expected)


def test_case_is_ignored_on_request(searcher: Searcher, tree: Open) -> None:
    fd = tree({"a": "Foo\nÉCOLE\n\u212aelvin\n".encode()})
    assert found(searcher, fd, "foo|école|kelvin", case_sensitive=False) == [
        ("a", 1, "Foo"), ("a", 2, "ÉCOLE"), ("a", 3, "\u212aelvin"),
    ]  # fmt: skip


def test_literal_pattern_matches_itself_only(searcher: Searcher, tree: Open) -> None:
    fd = tree({"a": b"a.b(c)\naxb(c)\n", "b": b"--pre=id\n"})
    assert found(searcher, fd, "a.b(c)", literal=True) == [("a", 1, "a.b(c)")]
    assert found(searcher, fd, "--pre=id", literal=True) == [("b", 1, "--pre=id")]


def test_context_stays_in_file_and_overlaps_neighbours(searcher: Searcher, tree: Open) -> None:
    fd = tree({"a": b"1\nx2\nx3\n4\n5\n6\nx7", "b": b"x"})
    result = searcher.search(fd, SearchRequest("x", context=2))
    assert result.matches == [
        Match("a", 2, "x2", ("1",), ("x3", "4")),
        Match("a", 3, "x3", ("1", "x2"), ("4", "5")),
        Match("a", 7, "x7", ("5", "6"), ()),
        Match("b", 1, "x"),
    ]


@pytest.mark.parametrize("count_searched", [False, True])
def test_limit_restricts_shown_matches_but_not_counts(searcher: Searcher, tree: Open, count_searched: bool) -> None:
    names = [f"{number:02}/{letter}.txt" for number in range(20) for letter in "ab"]
    content: dict[str, Any] = {}
    for name in names:
        content.setdefault(name[:2], {})[name[3:]] = b"hit\nmiss\nhit\n"
    fd = tree({**content, "00.txt": b"hit", "00-x": b"hit"})
    result = searcher.search(fd, SearchRequest("hit", limit=4, count_searched=count_searched))
    assert [(match.path, match.line) for match in result.matches] == [
        ("00-x", 1), ("00.txt", 1), ("00/a.txt", 1), ("00/a.txt", 3),
    ]  # fmt: skip
    assert (result.total, result.files_matched, result.truncated) == (82, 42, True)
    assert result.files_searched == (42 if count_searched else None)


def test_ripgrep_gives_same_answer_when_output_is_large(tree: Open) -> None:
    fd = tree({f"{number}": b"some text\n" * 500 for number in range(30)})
    fast = Searcher(Limits(search_stream_bytes=1000), engine="ripgrep")
    assert fast.search(fd, SearchRequest("text", limit=700, context=1)) == Searcher(engine="ripgrep").search(
        fd, SearchRequest("text", limit=700, context=1)
    )


def test_search_without_landlock_finds_lines(tree: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    fd = tree(TEXTS)
    monkeypatch.setattr(landlock_exec, "available", lambda: False)
    searcher = Searcher(engine="ripgrep")
    assert found(searcher, fd, "two|first", context=1) == [("a.txt", 2, "two two"), ("c/crlf.txt", 1, "first")]


def test_long_lines_are_cut_around_match_and_marked(searcher: Searcher, tree: Open) -> None:
    fd = tree({
        "end": b"needle" + b"y" * 3000,
        "long": b"x" * 500_000 + b"needle" + "é".encode() * 500_000 + b"\nnext\n",
        "start": b"x" * 1995 + b"needle",
        "whole": b"needle".rjust(2000),
    })  # fmt: skip
    result = searcher.search(fd, SearchRequest("needle", context=1))
    assert [(match.path, match.content, match.after, match.cut) for match in result.matches] == [
        ("end", "needle" + "y" * 1994 + "…", (), True),
        ("long", "…" + "x" * 500 + "needle" + "é" * 747 + "…", ("next",), True),
        ("start", "…" + "x" * 500 + "needle", (), True),
        ("whole", "needle".rjust(2000), (), False),
    ]


def test_long_utf_16_line_is_cut_in_same_place(searcher: Searcher, tree: Open) -> None:
    line = "é" * 5000 + "needle" + "z" * 5000
    fd = tree({"a": ("\ufeff" + line).encode("utf-16-le"), "b": b"\xef\xbb\xbf" + line.encode()})
    shown = "…" + "é" * 250 + "needle" + "z" * 1494 + "…"
    assert found(searcher, fd, "needle") == [("a", 1, shown), ("b", 1, shown)]


def test_binary_files_are_skipped(searcher: Searcher, tree: Open) -> None:
    late = b"hit\n" * 100_000 + b"\0"
    fd = tree({"early": b"hit\0", "late": late, "text": b"hit", "utf-16": "\ufeffhit".encode("utf-16-le")})
    result = searcher.search(fd, SearchRequest("hit", count_searched=True))
    assert [match.path for match in result.matches] == ["text", "utf-16"]
    assert (result.total, result.files_searched) == (2, 2)
    assert [match[0] for match in found(searcher, fd, "hit")] == ["text", "utf-16"]


def test_odd_file_names_are_found(searcher: Searcher, tree: Open) -> None:
    names = ["-e", "--pre=id", "new\nline", "bad\udcff", "tab\t", " ", "x: WARNING: stopped", "é", "{a,b}", "[x]"]
    fd = tree(dict.fromkeys(names, b"hit\n") | {"dir\n": {"a\nb": b"hit"}})
    expected = sorted([*names, "dir\n/a\nb"])
    assert [match[0] for match in found(searcher, fd, "hit")] == expected
    assert searcher.find(fd, FindRequest(Scope())).files == expected
    assert found(searcher, fd, "hit", scope=Scope(include=("new?line", "bad?"))) == [
        ("bad\udcff", 1, "hit"), ("new\nline", 1, "hit"),
    ]  # fmt: skip


IGNORED = {
    ".gitignore": b"*.log\n/out\n!keep.log\n",
    "a.log": b"hit",
    "keep.log": b"hit",
    "out": {"x": b"hit"},
    "deep": {"out": {"y": b"hit"}, ".gitignore": b"y2\n", "y2": b"hit", ".ignore": b"!z.log", "z.log": b"hit"},
    ".git": {"info": {"exclude": b"secret\n"}, "config": b"hit"},
    "secret": b"hit",
    "node_modules": {"m.js": b"hit"},
    ".hidden": b"hit",
}


def test_search_leaves_out_only_ignored_files_and_git(searcher: Searcher, tree: Open) -> None:
    fd = tree(IGNORED)
    seen = [".hidden", "deep/out/y", "deep/z.log", "keep.log", "node_modules/m.js"]
    assert [match[0] for match in found(searcher, fd, "hit")] == seen
    assert searcher.find(fd, FindRequest(Scope(include=("*",)))).files == sorted(
        [*seen, ".gitignore", "deep/.gitignore", "deep/.ignore"]
    )


def test_ignore_files_and_exclusions_can_be_switched_off(searcher: Searcher, tree: Open) -> None:
    fd = tree(IGNORED)
    everything = Scope(ignore_files=False, exclusions=())
    assert [match[0] for match in found(searcher, fd, "hit", scope=everything)] == [
        ".git/config", ".hidden", "a.log", "deep/out/y", "deep/y2", "deep/z.log", "keep.log", "node_modules/m.js",
        "out/x", "secret",
    ]  # fmt: skip


def test_ignore_files_above_root_and_of_user_have_no_effect(
    searcher: Searcher, tree: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitignore").write_text("*\n")
    (tmp_path / "home/git").mkdir(parents=True)
    (tmp_path / "home/git/ignore").write_text("*\n")
    (tmp_path / "home/rc").write_text("--files\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "home/rc"))
    assert found(searcher, tree({"a": b"hit"}), "hit") == [("a", 1, "hit")]


def test_include_does_not_restore_ignored_files(searcher: Searcher, tree: Open) -> None:
    fd = tree(
        {".gitignore": b"b.py\n", "a.py": b"hit", "b.py": b"hit", "build": {"c.py": b"hit"}, "d": {"e.py": b"hit"}}
    )
    assert [match[0] for match in found(searcher, fd, "hit", scope=Scope(include=("*.py",)))] == [
        "a.py",
        "build/c.py",
        "d/e.py",
    ]


def test_excluded_names_are_left_out_at_any_depth(searcher: Searcher, tree: Open) -> None:
    fd = tree({"a": {"skip": {"x": b"hit"}, "y": b"hit"}, "skip": b"hit", "z.min.js": b"hit"})
    assert [match[0] for match in found(searcher, fd, "hit", scope=Scope(exclude=("skip", "*.min.js")))] == ["a/y"]


def test_files_left_out_by_limits_are_counted_and_named(searcher: Searcher, tree: Open) -> None:
    big = {f"big{number:02}.txt": b"hit" * 40 for number in range(30)}
    fd = tree({**big, "small": b"hit", "d": {"ok": b"hit", "e": {"no": b"hit"}}, "f": {"g": {}}})
    result = searcher.search(fd, SearchRequest("hit", scope=Scope(max_file_bytes=100, max_depth=2)))
    assert [match.path for match in result.matches] == ["d/ok", "small"]
    assert (result.skipped.too_large.names, result.skipped.too_large.count) == (sorted(big)[:20], 30)
    assert (result.skipped.too_deep.names, result.skipped.too_deep.count) == (["d/e", "f/g"], 2)


def test_find_names_directories_with_files_beyond_depth_limit(searcher: Searcher, tree: Open) -> None:
    fd = tree({"a.py": b"", "d": {"b.py": b"", "e": {"c.py": b"", "f": {"d.py": b""}}, "g": {"x.txt": b""}}})
    result = searcher.find(fd, FindRequest(Scope(include=("**/*.py",), max_depth=2)))
    assert (result.files, result.total, result.skipped.too_deep.names) == (["a.py", "d/b.py"], 2, ["d/e"])


def test_unreadable_files_and_directories_are_named(searcher: Searcher, tree: Open, tmp_path: Path) -> None:
    fd = tree({"closed": b"hit", "closed.py": b"hit", "open.py": b"hit", "room": {"x": b"hit"}})
    for name in ("closed", "closed.py", "room"):
        (tmp_path / "tree" / name).chmod(0)

    def look(*include: str) -> object:
        result = searcher.search(fd, SearchRequest("hit", scope=Scope(include=include)))
        return [match.path for match in result.matches], result.skipped.unreadable.names

    everything, some = bound_by_permissions(lambda: (look(), look("*.py")))
    listed = bound_by_permissions(lambda: searcher.find(fd, FindRequest(Scope())).skipped.unreadable.names)
    (tmp_path / "tree/room").chmod(0o700)
    assert everything == (["open.py"], ["closed", "closed.py", "room"])
    assert some == (["open.py"], ["closed.py", "room"])
    assert listed == ["room"]


def test_search_does_not_follow_links(searcher: Searcher, tree: Open, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("hit")
    fd = tree({"real": {"x": b"hit"}})
    place = tmp_path / "tree"
    (place / "out").symlink_to(tmp_path / "outside")
    (place / "in").symlink_to("real")
    (place / "loop").symlink_to(".")
    (place / "file").symlink_to("real/x")
    os.mkfifo(place / "fifo")
    assert found(searcher, fd, "hit") == [("real/x", 1, "hit")]
    assert searcher.find(fd, FindRequest(Scope())).files == ["real/x"]
    assert searcher.find(fd, FindRequest(Scope(include=("out/*", "../**", "/../*", "in/*")))).files == []


def test_find_with_link_test_returns_links_to_files(searcher: Searcher, tree: Open, tmp_path: Path) -> None:
    fd = tree({"real": {"x": b""}, ".gitignore": b"hidden\n", "deep": {"er": {}}})
    for name in ("link", "hidden", "other", "deep/er/link"):
        (tmp_path / "tree" / name).symlink_to(tmp_path / "tree/real/x")
    (tmp_path / "tree/directory").symlink_to("real")

    def links(*globs: str, depth: int | None = None) -> list[str]:
        scope = Scope(globs, anywhere=False, max_depth=depth)
        result = searcher.find(fd, FindRequest(scope, leads_to_file=lambda path: path != "other"))
        assert result.total == len(result.files)
        return [path for path in result.files if (tmp_path / "tree" / path).is_symlink()]

    assert links("**") == ["deep/er/link", "directory", "link"]
    assert links("*") == ["directory", "link"]
    assert links("deep/er/", "l*") == ["deep/er/link", "link"]
    assert links("**/l*", depth=2) == ["link"]


def test_find_returns_newest_files_first_on_request(searcher: Searcher, tree: Open, tmp_path: Path) -> None:
    fd = tree(dict.fromkeys("dcba", b""))
    for age, name in enumerate("badc"):
        os.utime(tmp_path / "tree" / name, ns=(0, 10**18 - (age // 2) * 10**9))
    newest = searcher.find(fd, FindRequest(Scope(), sort="time"))
    assert newest.files == ["a", "b", "c", "d"]
    assert searcher.find(fd, FindRequest(Scope(), sort="time", limit=1)).files == ["a"]
    assert (newest.total, newest.truncated) == (4, False)


def test_find_globs_follow_anywhere_and_fold_case(searcher: Searcher, tree: Open) -> None:
    fd = tree({"A.py": b"", "d": {"b.PY": b"", "c.ts": b""}})
    assert searcher.find(fd, FindRequest(Scope(include=("*.py",), anywhere=False))).files == ["A.py"]
    assert searcher.find(fd, FindRequest(Scope(include=("*.py",), fold_case=True))).files == ["A.py", "d/b.PY"]
    assert searcher.find(fd, FindRequest(Scope(include=("d/",)))).files == ["d/b.PY", "d/c.ts"]
    assert searcher.find(fd, FindRequest(Scope(include=("**/*.{py,ts}",)))).files == ["A.py", "d/c.ts"]


HIDING: dict[str, Any] = {
    ".gitignore": b"*.py\n",
    "d": {".ignore": b"out/\n", "out": {"x.js": b"hit\nhit\n"}, "y.py": b"hit"},
    "vendored": {".git": {"info": {"exclude": b"e.rs\n"}}, "e.rs": b"hit"},
    "build": {"c.go": b"hit go"},
    ".git": {"config": b"hit"},
}


def test_fruitless_search_counts_matches_in_hidden_files(searcher: Searcher, tree: Open) -> None:
    fd = tree(HIDING)

    def hidden(pattern: str, *include: str, exclusions: tuple[str, ...] = (".git",)) -> object:
        return searcher.search(fd, SearchRequest(pattern, scope=Scope(include, exclusions=exclusions))).hidden

    assert hidden("^hit$") == Hidden(4, [".git/info/exclude", ".gitignore", ".ignore"], "d/out/x.js", complete=True)
    assert hidden("hit", "*.py") == Hidden(1, [".gitignore"], "d/y.py", complete=True)
    assert hidden("hit go", exclusions=("build",)) == Hidden(1, [EXCLUSIONS], "build/c.go", complete=True)
    assert hidden("hit", "*.ts") is None
    assert hidden("hit") is None, "the search found something"
    assert searcher.search(fd, SearchRequest("none", scope=Scope(ignore_files=False))).hidden is None


def test_fruitless_find_and_rank_count_hidden_files(searcher: Searcher, tree: Open) -> None:
    fd = tree(HIDING)
    assert searcher.find(fd, FindRequest(Scope(("*.js",)))).hidden == Hidden(1, [".ignore"], "d/out/x.js", True)
    assert searcher.find(fd, FindRequest(Scope(("*.ts",)))).hidden is None
    assert searcher.rank(fd, RankRequest("hit", Scope(("*.py",)))).hidden == Hidden(1, [".gitignore"], "d/y.py", True)


def test_look_through_hidden_files_without_time_is_incomplete(searcher: Searcher, tree: Open) -> None:
    timeless = Searcher(Limits(hidden_seconds=0), engine=searcher.engine.name)  # type: ignore[arg-type]
    hidden = timeless.search(tree(HIDING), SearchRequest("^hit$")).hidden
    assert hidden is not None
    assert not hidden.complete


def test_look_without_ignore_files_searches_nothing_again(tree: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    fd, counted = tree({"a": b"x", "d": {"b": b"x"}}), []
    monkeypatch.setattr(BuiltinEngine, "count", lambda *asked: counted.append(asked))
    assert Searcher(engine="builtin").search(fd, SearchRequest("hit")).hidden is None
    assert counted == []


@pytest.mark.parametrize("engine", ["ripgrep", "builtin"])
def test_inexact_search_returns_first_matches_of_whole_result(tree: Open, engine: EngineName) -> None:
    fd = tree({f"{name}/{number}": b"some text\nand text\n" * 3 for name in "cab" for number in range(40)})
    searcher = Searcher(Limits(search_look_seconds=60), engine=engine)
    whole = searcher.search(fd, SearchRequest("text", limit=10_000, context=1))
    for limit in (1, 5, 6, 7, 100, whole.total - 1):
        part = searcher.search(fd, SearchRequest("text", limit=limit, context=1, exact=False))
        assert (part.matches, part.truncated, part.complete) == (whole.matches[:limit], True, True)
        assert limit < part.total <= whole.total
    full = searcher.search(fd, SearchRequest("text", limit=whole.total, context=1, exact=False))
    assert (full.matches, full.total, full.truncated) == (whole.matches, whole.total, False)


def test_inexact_search_reads_only_first_files(tree: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    fd = tree({f"{number:03}": b"text\n" for number in range(200)})
    monkeypatch.setattr("handrail.kernel.search.ripgrep.run_ripgrep", None)  # must not be called
    searcher = Searcher(Limits(search_look_seconds=60), engine="ripgrep")
    assert len(searcher.search(fd, SearchRequest("text", limit=50, exact=False)).matches) == 50
