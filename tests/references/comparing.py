"""Compares the answers of Handrail and of a reference, and reads the differences that a contract page lists."""

import base64
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from support.contract_cases import CONTRACTS

from handrail.tools.router import ToolRouter

_SECTION = "## Differences from the reference"


class Answer(NamedTuple):
    """Holds what a model would read, and whether it is an error."""

    failed: bool
    content: Any


class ReferenceCase(NamedTuple):
    """Holds calls on a tree of files. Paths in the parameters may contain `{root}`."""

    name: str
    files: dict[str, str | bytes]
    calls: list[tuple[str, dict[str, Any]]]


def planted(case: ReferenceCase, root: Path) -> Path:
    """Make the files of a case; a name that ends with a slash is a directory, `-> x` as content a link."""
    root.mkdir(parents=True)
    for name, content in case.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        elif isinstance(content, str) and content.startswith("-> "):
            path.symlink_to(content.removeprefix("-> "))
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def params_of(params: dict[str, Any], root: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(params).replace("{root}", str(root)))
    return made


def through_handrail(router: ToolRouter, tool: str, params: dict[str, Any], root: Path) -> Answer:
    """Make a call as the API sends it, and return what the API would get back, without hints."""
    block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": params_of(params, root)}
    answer = router.call_anthropic(block)
    return Answer(bool(answer.get("is_error")), plain(answer["content"], root))


def plain(content: Any, root: Path) -> Any:
    """Return content without the path of the root, which differs."""
    if isinstance(content, str):
        return content.replace(str(root), "$ROOT")
    return json.loads(json.dumps(content).replace(str(root), "$ROOT"))


def tree(root: Path) -> dict[str, str]:
    """Return every file below a directory with its content."""
    return {
        str(each.relative_to(root)): base64.b64encode(each.read_bytes()).decode()
        for each in sorted(root.rglob("*"))
        if each.is_file() and not each.is_symlink()
    }


def listed_differences(dialect: str) -> dict[str, str]:
    """Return the cases that the contract of a dialect lists as different, each with its reason."""
    page = (CONTRACTS / f"{dialect}.md").read_text().partition(_SECTION)[2]
    return {match[1]: match[2].strip() for match in re.finditer(r"^\| `([^`]+)` \|(.*)\|$", page, re.MULTILINE)}


def assert_exactly_listed(found: dict[str, Any], dialect: str) -> None:
    """Fail if the cases that differ are not those that the contract of a dialect lists."""
    listed = listed_differences(dialect)
    new = [f"{name}: {answers}"[:1500] for name, answers in found.items() if name not in listed]
    gone = [name for name in listed if name not in found]
    assert [*new, *gone] == [], "\n".join([*new, f"gone: {gone}"])
