"""Tests parameters: the schema and the checks derive from one declaration."""

from typing import Any, Literal

import pytest

from handrail.model.faults import BadParameters, Problem
from handrail.tools.schema import Params, field


class Inner(Params):
    name: str = field("A name.", min_length=1)
    weight: float = field("A weight.", default=1.0)


class Outer(Params):
    path: str = field("A path.")
    count: int = field("A count.", default=3, ge=1, le=10)
    limit: int | None = field("A limit.", default=None, ge=0)
    deep: bool = field("Whether deep.", default=False)
    mode: Literal["fast", "slow"] = field("How.", default="fast")
    tags: list[str] = field("Tags.", default=None)
    parts: list[Inner] = field("Parts.", default=None, min_length=1)
    inner: Inner | None = field("One part.", default=None)
    text: str = field("A body.", default="", body=True)


class Further(Outer):
    extra: str = field("One more.", default="")


class Lenient(Params):
    unknown_allowed = True
    path: str = field("A path.")


def parse(given: Any, kind: type[Params] = Outer) -> dict[str, Any]:
    return vars(kind.parse(given))


def problems(given: Any, kind: type[Params] = Outer) -> list[Problem]:
    with pytest.raises(BadParameters) as raised:
        kind.parse(given)
    return raised.value.problems


def test_params_schema_derives_from_declaration() -> None:
    inner = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "A name."},
            "weight": {"type": "number", "description": "A weight.", "default": 1.0},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    assert Outer.schema() == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "A path."},
            "count": {"type": "integer", "minimum": 1, "maximum": 10, "description": "A count.", "default": 3},
            "limit": {"type": "integer", "minimum": 0, "description": "A limit."},
            "deep": {"type": "boolean", "description": "Whether deep.", "default": False},
            "mode": {"type": "string", "enum": ["fast", "slow"], "description": "How.", "default": "fast"},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "Tags."},
            "parts": {"type": "array", "items": inner, "minItems": 1, "description": "Parts."},
            "inner": {**inner, "description": "One part."},
            "text": {"type": "string", "description": "A body.", "default": ""},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    assert Lenient.schema()["additionalProperties"] is True
    assert Outer.bodies == {"text"}


def test_params_fields_are_inherited() -> None:
    assert list(Further.fields) == ["extra", *Outer.fields]
    assert "extra" not in Outer.fields
    assert Further.bodies == {"text"}


def test_params_missing_optional_takes_default() -> None:
    assert parse({"path": "x"}) == {
        "path": "x",
        "count": 3,
        "limit": None,
        "deep": False,
        "mode": "fast",
        "tags": None,
        "parts": None,
        "inner": None,
        "text": "",
    }


def test_params_valid_values_are_unchanged() -> None:
    parsed = parse(
        {
            "path": "ü\n",
            "text": "ü\x00\n",
            "count": 10,
            "limit": 0,
            "deep": True,
            "mode": "slow",
            "tags": ["a", ""],
            "parts": [{"name": "n", "weight": 2.5}],
            "inner": {"name": "m"},
        }
    )
    assert (parsed["path"], parsed["count"], parsed["limit"], parsed["deep"]) == ("ü\n", 10, 0, True)
    assert parsed["text"] == "ü\x00\n"
    assert parsed["tags"] == ["a", ""]
    assert vars(parsed["parts"][0]) == {"name": "n", "weight": 2.5}
    assert vars(parsed["inner"]) == {"name": "m", "weight": 1.0}
    assert parse({"path": "x", "limit": None, "inner": None})["limit"] is None


def test_params_whole_float_becomes_integer() -> None:
    count = parse({"path": "x", "count": 4.0})["count"]
    assert (count, type(count)) == (4, int)


def test_params_unknown_ignored_if_allowed() -> None:
    assert parse({"path": "x", "more": 1}, Lenient) == {"path": "x"}
    assert problems({"more": 1}, Lenient) == [Problem("", "missing", "path")]


KNOWN = "path, count, limit, deep, mode, tags, parts, inner, text"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, Problem("", "type", "object", "null")),
        ([], Problem("", "type", "object", "array")),
        ({}, Problem("", "missing", "path")),
        ({"path": "x", "pth": 1}, Problem("", "unknown", KNOWN, "pth")),
        ({"path": None}, Problem("path", "type", "string", "null")),
        ({"path": 5}, Problem("path", "type", "string", "integer")),
        ({"path": {}}, Problem("path", "type", "string", "object")),
        ({"path": b"x"}, Problem("path", "type", "string", "value")),
        ({"path": "\ud800"}, Problem("path", "text", "Unicode text", "a lone surrogate")),
        ({"path": "a\0b"}, Problem("path", "nul", "")),
        ({"path": "é\0"}, Problem("path", "nul", "")),
        ({"path": "x", "tags": ["a", "\0"]}, Problem("tags/1", "nul", "")),
        ({"path": "x", "count": True}, Problem("count", "type", "integer", "boolean")),
        ({"path": "x", "count": "3"}, Problem("count", "type", "integer", "string")),
        ({"path": "x", "count": 3.5}, Problem("count", "type", "integer", "number")),
        ({"path": "x", "count": float("inf")}, Problem("count", "type", "integer", "number")),
        ({"path": "x", "count": float("nan")}, Problem("count", "type", "integer", "number")),
        ({"path": "x", "count": 0}, Problem("count", "minimum", "1", "0")),
        ({"path": "x", "count": 11}, Problem("count", "maximum", "10", "11")),
        ({"path": "x", "limit": -1}, Problem("limit", "minimum", "0", "-1")),
        ({"path": "x", "deep": 1}, Problem("deep", "type", "boolean", "integer")),
        ({"path": "x", "deep": "true"}, Problem("deep", "type", "boolean", "string")),
        ({"path": "x", "mode": "medium"}, Problem("mode", "choice", "fast, slow", "medium")),
        ({"path": "x", "mode": ["fast"]}, Problem("mode", "choice", "fast, slow", "array")),
        ({"path": "x", "mode": 10**5000}, Problem("mode", "choice", "fast, slow", "integer")),
        ({"path": "x", "limit": 2**63}, Problem("limit", "maximum", str(2**63 - 1), "a number of 64 bits")),
        ({"path": "x", "limit": -(10**5000)}, Problem("limit", "minimum", "0", "a number of 16610 bits")),
        ({"path": "x", "limit": 1e308}, Problem("limit", "maximum", str(2**63 - 1), "a number of 1024 bits")),
        ({"path": "x", "tags": "a"}, Problem("tags", "type", "array", "string")),
        ({"path": "x", "tags": ["a", 2]}, Problem("tags/1", "type", "string", "integer")),
        ({"path": "x", "parts": []}, Problem("parts", "length", "1 items", "0")),
        ({"path": "x", "parts": [5]}, Problem("parts/0", "type", "object", "integer")),
        ({"path": "x", "parts": [{"name": "a"}, {}]}, Problem("parts/1", "missing", "name")),
        ({"path": "x", "parts": [{"name": ""}]}, Problem("parts/0/name", "length", "1 characters", "0")),
        ({"path": "x", "parts": [{"name": "é" * 5, "x": 1}]}, Problem("parts/0", "unknown", "name, weight", "x")),
        ({"path": "x", "inner": {"name": "a", "weight": "2"}}, Problem("inner/weight", "type", "number", "string")),
    ],
)
def test_params_problem_is_named_by_location(given: Any, expected: Problem) -> None:
    assert problems(given) == [expected]


def test_params_null_for_optional_means_default() -> None:
    assert (
        parse({"path": "x", "count": None, "inner": {"name": "a", "weight": None}})["count"]
        == parse({"path": "x"})["count"]
    )


def test_params_all_problems_are_reported() -> None:
    found = problems({"count": 0, "deep": 0, "surplus": 1})
    assert [(each.where, each.kind) for each in found] == [
        ("", "missing"), ("count", "minimum"), ("deep", "type"), ("", "unknown"),
    ]  # fmt: skip
