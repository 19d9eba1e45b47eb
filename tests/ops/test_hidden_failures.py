"""Tests what the text of a command tells about failures that its exit status and its output hide."""

import pytest

from handrail.ops.shell.hidden_failures import changes_git_config, discards_errors, hides_failure, named_changes
from handrail.ops.shell.printed_names import printed_names


@pytest.mark.parametrize(
    ("text", "hides"),
    [
        ("make", False),
        ("make && make test", False),
        ("make 2>&1", False),
        ("make &> log", False),
        ("make >& log", False),
        ("make;", False),
        ("echo 'a; b | c'", False),
        ('echo "a || b"', False),
        ("echo a\\;b", False),
        ("echo $((1 + 1))", False),
        ("make | tail", True),
        ("make || true", True),
        ("make; true", True),
        ("make\ntrue", True),
        ("make & wait", True),
        ("! make", True),
        ("if make; then x; fi", True),
        ("echo $(make)", True),
        ('echo "$(make)"', True),
        ("echo `make`", True),
        ("diff <(make) x", True),
    ],
)
def test_hides_failure_unless_every_part_must_succeed(text: str, hides: bool) -> None:
    assert hides_failure(text) is hides


@pytest.mark.parametrize(
    ("text", "discards"),
    [
        ("x 2>/dev/null", True),
        ("x 2> /dev/null", True),
        ("x &>/dev/null", True),
        ("x >/dev/null 2>&1", True),
        ("x 2>&-", True),
        ("x > /dev/null", False),
        ("x 2>&1 | cat", False),
        ("echo '2>/dev/null'", False),
    ],
)
def test_discards_errors_only_if_the_error_output_is_lost(text: str, discards: bool) -> None:
    assert discards_errors(text) is discards


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("touch a b 2>/dev/null", ["/dev/null", "a", "b"]),
        ("cp /usr/a b", ["b"]),
        ("dd if=a of=b", ["b"]),
        ("sed -i s/a/b/ c", ["s/a/b/", "c"]),
        ("sed s/a/b/ c", []),
        ("cat a > b", ["b"]),
        ("cat < a >> b", ["b"]),
        ("cat a", []),
        ("bash -c 'rm x'", ["x"]),
    ],
)
def test_named_changes_are_targets_and_operands_of_writers(text: str, paths: list[str]) -> None:
    assert named_changes(text) == paths


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("git config a.b c", True),
        ("git -C d config --unset a.b", True),
        ("git config set a.b c", True),
        ("git config a.b", False),
        ("git config get a.b", False),
        ("git config --global a.b c", False),
        ("git -c a.b=c status", False),
        ("echo git config a.b c", False),
    ],
)
def test_changes_git_config_tells_writes_from_reads(text: str, changes: bool) -> None:
    assert changes_git_config(text) is changes


def test_printed_names_are_those_given_to_programs_that_print() -> None:
    assert printed_names("cd d && cat src/a.py | head -n 5; sed -i s/x/y/ b.py; python c.py") == {"a.py", "5"}
