"""Edits TOML text; comments and layout survive."""

import tomllib
from typing import Any

import pytest

from handrail.ops.toml_edit import add_element, remove_element, set_in_element, set_table

ENTRY: dict[str, Any] = {"command": "c", "args": ["a", "b"]}
OURS = '[servers.ours]\ncommand = "c"\nargs = ["a", "b"]\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", OURS),
        ("# mine", f"# mine\n\n{OURS}"),
        ("[a]\nb = 1\n# end\n", f"[a]\nb = 1\n# end\n\n{OURS}"),
        ("[servers]\n", f"[servers]\n\n{OURS}"),
        ("[servers.x]\ny = 1  # z\n", f"[servers.x]\ny = 1  # z\n\n{OURS}"),
        ("[servers.x]\ny = 1\n\n# about p\n[p]\n", f"[servers.x]\ny = 1\n\n{OURS}\n# about p\n[p]\n"),
        ("[servers.x.env]\ny = 1\n# about p\n[p]\n", f"[servers.x.env]\ny = 1\n\n{OURS}# about p\n[p]\n"),
        ("[servers.x]\n# p\n[p]\n# y\n[servers.y]\n", f"[servers.x]\n# p\n[p]\n# y\n[servers.y]\n\n{OURS}"),
        (
            "servers = { x = { y = 1 } }  # z\n",
            'servers = { x = { y = 1 }, ours = {command = "c", args = ["a", "b"]}}  # z\n',
        ),
    ],
)
def test_set_table_adds_a_table_and_keeps_the_rest(before: str, after: str) -> None:
    assert set_table(before, "servers", "ours", ENTRY) == after
    assert tomllib.loads(after)["servers"]["ours"] == ENTRY


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (OURS, OURS),
        ("[servers.ours]\ncommand = 'c' # note\nargs = [\n  'a',\n  'b',\n]\n", None),
        (
            "[servers.ours]\ncommand = 'old' # note\nurl = 'x'\n\n# about p\n[p]\n",
            '[servers.ours]\ncommand = "c" # note\nargs = ["a", "b"]\n\n# about p\n[p]\n',
        ),
        ("[servers.ours.env]\nA = 1\n\n# about p\n[p]\n", f"{OURS}\n# about p\n[p]\n"),
        (
            "[servers]\nours.command = 'x'\n# about y\ny.z = 1\n",
            '[servers]\nours.command = "c"\nours.args = ["a", "b"]\n# about y\ny.z = 1\n',
        ),
        ("[servers.x]\n[p]\n# o\n[servers.ours]\na = 1\n# z\n[z]\n", f"[servers.x]\n[p]\n# o\n{OURS}# z\n[z]\n"),
    ],
)
def test_set_table_replaces_a_table_and_keeps_comments(before: str, after: str | None) -> None:
    assert set_table(before, "servers", "ours", ENTRY) == (before if after is None else after)


def test_add_element_without_last_newline_starts_a_new_line() -> None:
    assert add_element("[[rule]]\na = 1 # one", "rule", {"a": 2}) == "[[rule]]\na = 1 # one\n\n[[rule]]\na = 2\n"


def test_remove_element_keeps_comments_of_the_others() -> None:
    text = "# file\n\n# one\n[[rule]]\na = 1\n\n# two\n[[rule]]\na = 2\n\n# end\n"
    assert remove_element(text, "rule", 0) == "# file\n\n# two\n[[rule]]\na = 2\n\n# end\n"
    assert remove_element(text, "rule", 1) == "# file\n\n# one\n[[rule]]\na = 1\n\n# end\n"


def test_remove_element_of_one_leaves_no_array() -> None:
    assert remove_element("# file\n\n[[rule]]\na = 1\n# end\n", "rule", 0) == "# file\n\n# end\n"


def test_set_in_element_keeps_comments_and_line_ends() -> None:
    text = "[[rule]]\r\na = 1  # one\r\n\r\n# two\r\n[[rule]]\r\na = 2\r\n"
    assert set_in_element(text, "rule", 0, "a", 3) == text.replace("a = 1", "a = 3")
    assert tomllib.loads(set_in_element(text, "rule", 0, "b", 3))["rule"] == [{"a": 1, "b": 3}, {"a": 2}]
