import pytest

from handrail.ops.search.literals import for_builtin, required_texts
from handrail.ops.search.regex import parse, parse_literal

REWRITTEN = [
    ("interface{}", r"interface\{\}", False),
    ("x{2}{3,}{,4}", r"x{2}{3,}\{,4\}", False),
    (r"\u0041\x{e9}\t", r"\x{41}\x{e9}\x{9}", False),
    (r"\é\/\"", 'é/"', False),
    ("[[&&--~~<>]", r"[\[\&\&-\-\~\~<>]", False),
    (r"[\w-.]", r"[\w\-\.]", False),
    (r"[]a\x01\t\b]", r"[\]a\x01\x09\x08]", False),
    (r"\Aa\Z", "^a$", False),
    ("(?P<n>a)(?<m>b)(?:c)(?i-s:d)", "(?P<n>a)(?<m>b)(?:c)(?i-s:d)", False),
    (r"(?=a)[^b]\d\1", r"(?=a)(?:(?![\r\n])[^b])(?:(?![\r\n])\d)\1", True),
    ("a++", "a++", True),
    (r"(?#note)\h(?R)", r"(?#note)\h(?R)", True),
]


@pytest.mark.parametrize(("given", "written", "pcre"), REWRITTEN)
def test_a_pattern_is_written_for_ripgrep(given: str, written: str, pcre: bool) -> None:
    pattern = parse(given)
    assert (pattern.for_ripgrep, pattern.needs_pcre) == (written, pcre)


NEEDED = [
    ("foo", ("foo",)),
    ("foo|bar", ("foo", "bar")),
    ("foo|b.r", ()),
    ("(foo|bar)baz", ("foo", "bar")),
    ("(ab|cd)+longer", ("longer",)),
    ("(foo)?bar", ("bar",)),
    ("fo*bar", ("bar",)),
    ("xfo+bar", ("xfo",)),
    (r"\bfoo\b.*(?=longer)", ("foo",)),
    ("(?i)foo", ()),
    ("(?i:foo)", ()),
    (r"\w+", ()),
    ("", ()),
]


@pytest.mark.parametrize(("given", "texts"), NEEDED)
def test_the_texts_that_a_match_needs_are_known(given: str, texts: tuple[str, ...]) -> None:
    assert required_texts(parse(given), fold_case=False) == texts


def test_letters_that_fold_beyond_ascii_are_not_relied_on() -> None:
    assert required_texts(parse("HelloWorldTask"), fold_case=True) == ("helloworldta",)


def test_a_repeated_repetition_gets_a_group_for_the_built_in_engine() -> None:
    assert for_builtin(parse("a*{2}(b+)?{3}")) == "(?:a*){2}(?:(b+)?){3}"


def test_a_literal_is_known_as_such() -> None:
    assert parse(r"a\.b").literal == "a.b"
    assert parse("a.b").literal is None
    assert parse_literal("(a").for_ripgrep == r"\(a"
