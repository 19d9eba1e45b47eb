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
def test_regex_is_rewritten_for_ripgrep(given: str, written: str, pcre: bool) -> None:
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
def test_required_texts_of_regex(given: str, texts: tuple[str, ...]) -> None:
    assert required_texts(parse(given), fold_case=False) == texts


def test_required_texts_skip_letters_folding_beyond_ascii() -> None:
    assert required_texts(parse("HelloWorldTask"), fold_case=True) == ("helloworldta",)


def test_for_builtin_groups_repeated_repetition() -> None:
    assert for_builtin(parse("a*{2}(b+)?{3}")) == "(?:a*){2}(?:(b+)?){3}"


def test_regex_literal_is_recognised() -> None:
    assert parse(r"a\.b").literal == "a.b"
    assert parse("a.b").literal is None
    assert parse_literal("(a").for_ripgrep == r"\(a"
