import pytest

from handrail.model.faults import InvalidPattern
from handrail.ops.glob.globs import compile_exclusions, compile_globs

MATCHES = [
    ("**/*.py", "a.py a/b.py a/b/c.py", "a.pyc a.py/b"),
    ("*.py", "a.py .py", "a/b.py"),
    ("*", "a .a", "a/b"),
    ("**", "a a/b .x/y", ""),
    ("**/**/**", "a a/b", ""),
    ("src/**/*.ts", "src/a.ts src/x/y/a.ts", "a.ts lib/src/a.ts"),
    ("src/**", "src/x src/x/y", "src xsrc/y"),
    ("a/**/b/**/c", "a/b/c a/x/b/y/z/c a/b/b/c", "a/c a/x/y/c a/b/c/d"),
    ("**/a/**", "a/b x/a/b", "a x/a"),
    ("a**b", "ab axxb", "a/b"),
    ("a*b*c", "abc a1b2b3c", "ab a/bc"),
    ("*ab*", "ab xaab abab", "ba a/b"),
    ("?", "a é \udcff", "ab /"),
    ("[a-c]x", "ax bx", "dx x"),
    ("[!a]x", "bx", "ax /x"),
    ("[^a]x", "bx", "ax"),
    ("[]a]", "] a", "b"),
    ("[a-]", "a -", "b"),
    ("[!]a]", "b", "] a"),
    ("{a,b}", "a b", "c"),
    ("{a,b{c,d}}.py", "a.py bc.py bd.py", "b.py"),
    ("{src,lib/**}/x", "src/x lib/x lib/a/b/x", "x src/a/x"),
    ("{,x}a", "a xa", "ya"),
    ("a{b}", "ab", "a{b}"),
    ("[{,}]", "{ , }", "a"),
    (r"\*\{\[\\", "*{[\\", "a"),
    ("/a", "a", "x/a"),
    ("./a//b", "a/b", ""),
    ("src/", "src/a src/a/b", "src x/src/a"),
    ("/", "a a/b", ""),
    ("../*", "", "a a/b"),
    ("/etc/*", "etc/x", "a/etc/x"),
    ("a.b+c", "a.b+c", "axb+c a.bbc"),
]


@pytest.mark.parametrize(("pattern", "yes", "no"), MATCHES)
def test_glob_matches_relative_paths(pattern: str, yes: str, no: str) -> None:
    matches = compile_globs([pattern]).matches
    assert [name for name in yes.split() if not matches(name)] == []
    assert [name for name in no.split() if matches(name)] == []


def test_glob_anywhere_without_slash_matches_any_depth() -> None:
    matches = compile_globs(["*.py", "/top", "src/"], anywhere=True).matches
    names = ["a.py", "d/a.py", "top", "d/top", "src/x", "d/src/x", "a.js"]
    assert [bool(matches(name)) for name in names] == [True, True, True, False, True, True, False]


def test_glob_fold_case_ignores_case() -> None:
    assert compile_globs(["*.PY"], fold_case=True).matches("É.py")
    assert compile_globs(["é"], fold_case=True).matches("É")
    assert not compile_globs(["*.PY"]).matches("a.py")


def test_exclusion_covers_everything_below() -> None:
    excluded = compile_exclusions(["node_modules", "build/", "/top/*.x"])
    names = ["node_modules", "a/node_modules/b/c", "build", "build/x", "top/a.x", "q/top/a.x", "other"]
    assert [bool(excluded(name)) for name in names] == [True, True, False, True, True, False, False]


SIEVES = [
    (["**/*.py"], False, ("*.py",)),
    (["src/**/*.{js,ts}"], False, ("*.js", "*.ts")),
    (["a[bc]?d*"], False, ("a*d*",)),
    ([r"\*\-\?"], False, ("[*]-[?]",)),
    (["*.Py"], True, ("*.[pP][yY]",)),
    (["kiss*é.x"], True, ("*.[xX]",)),
    (["src/**"], False, None),
    (["*.py", "**"], False, None),
    (["include:x"], False, None),
]


@pytest.mark.parametrize(("patterns", "fold_case", "sieve"), SIEVES)
def test_glob_sieve_keeps_possible_matches(patterns: list[str], fold_case: bool, sieve: tuple[str, ...] | None) -> None:
    assert compile_globs(patterns, fold_case=fold_case).sieve == sieve


BAD = [
    ("", "the pattern is empty", 0, "**/*"),
    ("a[", "unclosed bracket", 1, "a\\["),
    ("src/[abc", "unclosed bracket", 4, "src/[abc]"),
    ("[a/b]", "unclosed bracket", 0, "\\[a/b]"),
    ("{a,b", "unclosed brace", 0, "{a,b}"),
    ("x{a,{b}", "unclosed brace", 1, "x{a,{b}}"),
    ("a}", "unopened brace", 1, "a\\}"),
    ("x/[z-a]", "the range is reversed", 2, "x/[a-z]"),
    ("a\\", "nothing follows the backslash", 1, "a\\\\"),
    ("a\\/b", "a slash cannot be escaped", 1, "a/b"),
    ("{a,b,c,d,e,f,g,h}" * 4, "too many alternatives in braces", 16, "**/*.{js,ts}"),
    ("a" * 20_000, "the pattern is too long", 16_384, "**/*.py"),
]


@pytest.mark.parametrize(("pattern", "reason", "position", "example"), BAD)
def test_glob_invalid_is_refused_with_reason_and_example(
    pattern: str, reason: str, position: int, example: str
) -> None:
    with pytest.raises(InvalidPattern) as refused:
        compile_globs([pattern])
    facts = refused.value
    assert (facts.kind, facts.reason, facts.example) == ("glob", reason, example)
    assert facts.position == position or reason.startswith("too many")
    compile_globs([example])


def test_glob_hard_patterns_are_decided() -> None:
    assert not compile_globs(["*a" * 100 + "b"]).matches("a" * 255)
    assert not compile_globs(["**/a/" * 50 + "b"]).matches("a/" * 2000 + "c")
    assert not compile_globs(["/".join(["**/*a*a*a*a"] * 20)]).matches("a" * 200 + "/" + "a/" * 500)
