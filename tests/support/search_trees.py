"""Generates trees, patterns and scopes for searches, small enough to match often."""

import os
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from handrail.kernel.search.searcher import Searcher
from handrail.ops.glob.ignore_rules import DEFAULT_EXCLUSIONS
from handrail.ops.search.scope import Scope, SearchRequest

Open = Callable[[dict[str, Any]], int]

NAMES = ["a", "b.py", "c.txt", "D.PY", ".hidden", "src", "build", "x y", "new\nline", "bad\udcff", "-e", "é", "foo.o"]
IGNORE_LINES = [
    "*.py", "!b.py", "/a", "src/", "src/*", "a/**", "**/c.txt", "*", "!*/", "# no", "", "\\#x", "{a,c}.txt", "[bad",
    "x\\ y", "x y", "b.*", "!src/b.py", "src/**/a", ".hidden", "[a-c].*", "build", "!build/", "/src/build", "trail  ",
    "?", "*.[!p]*", "a/b.py", "**", "**/", "!**/a", "f*o", "foo.o/", "a/../b",
]  # fmt: skip
WORDS = [
    "foo",
    "Foo",
    "FOO",
    "bar",
    "fo",
    "o",
    "{}",
    "a_b",
    "aß",
    "é",
    " ",
    "\t",
    "(x)",
    "0",
    "12",
    "$x",
    "\u017f",
    "K",
]

_LINE = st.lists(st.sampled_from(WORDS), max_size=4).map("".join)
_TEXT = st.builds(
    lambda lines, ends, last: "".join(line + end for line, end in zip(lines, ends, strict=False)) + last,
    st.lists(_LINE, max_size=6),
    st.lists(st.sampled_from(["\n", "\n", "\r\n", "\r"]), min_size=6, max_size=6),
    _LINE,
).map(str.encode)
_ODD = st.sampled_from(
    [b"", b"\n", b"\n\n", b"foo\0bar\n", b"\xff\xfef\0o\0o\0", b"\xef\xbb\xbffoo", b"a\xffb foo\n\xfe\n"]
)
CONTENT = st.one_of(_TEXT, _TEXT, _ODD)
IGNORES = st.lists(st.sampled_from(IGNORE_LINES), min_size=1, max_size=4).map(lambda lines: "\n".join(lines).encode())


def _directory(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    files = st.dictionaries(st.sampled_from(NAMES), children, max_size=4)
    rules = st.dictionaries(st.sampled_from([".gitignore", ".ignore", ".rgignore"]), IGNORES, max_size=1)
    git: st.SearchStrategy[dict[str, Any]] = st.one_of(
        st.just({}), st.just({}), st.just({}), IGNORES.map(lambda text: {".git": {"info": {"exclude": text}}})
    )
    return st.builds(lambda *parts: {k: v for part in parts for k, v in part.items()}, files, rules, git)


TREES = _directory(st.recursive(CONTENT, _directory, max_leaves=8))

_ATOMS = st.sampled_from([
    "foo", "bar", "o", "f", ".", "[a-f]", "[^o]", r"\w", r"\d", r"\s", r"\S", r"\W", r"\D", "é", "ß", "{", "{}", r"\$",
    "[[:alpha:]]", r"[\w-]", "[]x]", "[^]x]", "[[]", r"\(", "K", "s", r"\x66", r"\u{66}", " ", "[&&a]", r"[^\n]", "_",
    r"\bfoo", r"o\b", r"\B", "^", "$", "(?i:FOO)", r"[\Wo]", "[A-Z]", r"\t", r"\pL", r"\p{Lu}", "}", "]", "ar",
])  # fmt: skip
_REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "*?", "+?", "{2}", "{1,2}", "{0,}", "{,2}"])
_PCRE = st.sampled_from(["(?=foo)", "(?!bar)", "(?<=o)", "(?<!f)", r"(o)\1", "(?>fo*)", "o++"])


def _extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
        st.builds("({}){}".format, inner, _REPEATS),
        st.builds("(?:{}){}".format, inner, _REPEATS),
        inner.map("(?i){}".format),
    )


PLAIN_PATTERNS = st.recursive(st.builds("{}{}".format, _ATOMS, _REPEATS), _extend, max_leaves=5)
_BREAKS = st.sampled_from([r"\n", r"\r\n", "\n", r"[\n]", r"\s+", r"[^x]+", r"\A", r"\z", ".*", ".*?"])
_SPANNING_ATOMS = st.one_of(
    _BREAKS, st.builds("{}{}".format, _ATOMS, _REPEATS), st.builds("({}|{})".format, _ATOMS, _BREAKS)
)
SPANNING = st.builds(
    "{}{}".format, st.one_of(st.just(""), _PCRE), st.lists(_SPANNING_ATOMS, min_size=1, max_size=4).map("".join)
)
PATTERNS = st.one_of(PLAIN_PATTERNS, PLAIN_PATTERNS, st.builds("{}{}{}".format, _PCRE, PLAIN_PATTERNS, st.just("")))

GLOBS = st.sampled_from([
    "*.py", "**/*.py", "a", "/a", "src/", "src/**", "**/src/*", "*", "?", "[a-c]*", "{a,b.py}", "{src,a}/**/*", "*.P?",
    "[!.]*", "b.*", "-e", "x y", "**/a/**", "../*", "/etc/*", "new*", "bad*", "é", "?.py", "*o*o*", "src/*/..",
])  # fmt: skip
SCOPES = st.builds(
    Scope,
    include=st.lists(GLOBS, max_size=2).map(tuple),
    exclude=st.one_of(st.just(()), st.lists(GLOBS, max_size=1).map(tuple)),
    anywhere=st.booleans(),
    fold_case=st.booleans(),
    ignore_files=st.booleans(),
    exclusions=st.sampled_from([(".git",), (".git", "build"), ("src",), DEFAULT_EXCLUSIONS]),
    max_depth=st.sampled_from([None, None, 1, 2]),
    max_file_bytes=st.sampled_from([None, None, 10]),
)


def found(searcher: Searcher, fd: int, pattern: str, **options: Any) -> list[tuple[str, int, str]]:
    result = searcher.search(fd, SearchRequest(pattern, **options))
    assert result.engine == searcher.engine.name
    assert result.complete
    return [(match.path, match.line, match.content) for match in result.matches]


def plant(tree: dict[str, Any], place: str) -> None:
    """Create the files of a tree."""
    os.makedirs(place, exist_ok=True)
    for name, value in tree.items():
        path = os.path.join(place, name)
        if isinstance(value, dict):
            plant(value, path)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(value)
