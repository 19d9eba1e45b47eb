"""Tests edits of plain YAML: the new value is there, and every other line stays."""

from typing import Any

import pytest

from handrail.ops.yaml_edit import parse_yaml, set_yaml

TEXT = """# mine
MODE: auto
extensions:
  developer:  # theirs
    enabled: true
    args:
    - a
    - 'it''s'

  # before memory
  memory:
    enabled: false
    text: "a: b # c"
last: 1
"""


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("MODE",), "auto"),
        (("last",), 1),
        (("extensions", "developer"), {"enabled": True, "args": ["a", "it's"]}),
        (("extensions", "memory", "text"), "a: b # c"),
        (("extensions", "none"), None),
        (("none", "deeper"), None),
    ],
)
def test_parse_yaml_returns_value(path: tuple[str, ...], value: Any) -> None:
    assert parse_yaml(TEXT, path) == value


@pytest.mark.parametrize(
    ("path", "value", "gone", "come"),
    [
        (("MODE",), "ask", ["MODE: auto"], ['MODE: "ask"']),
        (("NEW",), 3, [], ["NEW: 3"]),
        (("extensions", "developer", "enabled"), False, ["    enabled: true"], ["    enabled: false"]),
        (("extensions", "new"), {"a": [1], "b": {}}, [], ["  new:", "    a: [1]", "    b: {}"]),
        (("extensions", "developer", "args"), ["c"], ["    args:", "    - a", "    - 'it''s'"], ['    args: ["c"]']),
    ],
)
def test_set_yaml_changes_only_its_lines(path: tuple[str, ...], value: Any, gone: list[str], come: list[str]) -> None:
    new = set_yaml(TEXT, path, value)
    assert parse_yaml(new, path) == value
    before, after = TEXT.split("\n"), new.split("\n")
    for line in gone:
        before.remove(line)
    for line in come:
        after.remove(line)
    assert after == before
    assert set_yaml(new, path, value) == new


@pytest.mark.parametrize("text", ["", "---\n", "extensions:\n", "extensions: {}\n", "extensions:  # none\n", "a: 1\n"])
def test_set_yaml_makes_missing_mapping(text: str) -> None:
    new = set_yaml(text, ("extensions", "new"), {"a": 1})
    assert new.endswith("extensions:\n  new:\n    a: 1\n")
    assert parse_yaml(new, ("extensions", "new")) == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        "- extensions\n",
        "extensions: [a]\n",
        "extensions: &x\n  a: 1\n",
        "extensions: |\n  a: 1\n",
        "extensions:\n\ta: 1\n",
        "extensions:\n  a: 1\nextensions:\n  b: 1\n",
        "extensions:\n  a: 1\n---\nb: 1\n",
        "'extensions':\n  a: 1\n",
        "{extensions: {}}\n",
        "  extensions:\n",
        "a: 'x\nextensions:\n'\n",
    ],
)
def test_set_yaml_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        set_yaml(text, ("extensions", "new"), {"a": 1})
