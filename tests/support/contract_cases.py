"""Reads the executable contracts, `contracts/*.md`. The format is described in contracts/README.md."""

import json
import os
import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from handrail.model.paths import unquote

CONTRACTS = Path(__file__).parent.parent.parent / "contracts"
FLAGS = {"approve": "--approve", "read_only": "--read-only", "sandbox": "--sandbox"}
"""The settings that a case may have, and the flags that set them on the command line."""
_FENCE = re.compile(r"^(`{3,})(\w+)[ ]?(.*)$")
AFTERWARDS = ("after", "bytes", "gone", "mode")
"""Expectations about files, not about the answer."""
NOT_SETTINGS = ("answer_tokens", "limits", "one_session", "ordinary_user", "patient")
"""Options that say how to play a case. They are no settings."""
_HEADING = re.compile(r"^(#{2,3}) (.+)$")


@dataclass
class Expectation:
    kind: str
    argument: str
    body: str


@dataclass
class Step:
    tool: str
    params: str
    expected: list[Expectation] = field(default_factory=list)


@dataclass
class Case:
    dialect: str
    tool: str
    title: str
    line: int
    before: list[Expectation] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, Any]:
        """Return the options that are settings of a workspace."""
        given = {key: value for key, value in self.options.items() if key not in NOT_SETTINGS}
        return {"approve": "auto"} | given

    @property
    def options(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for block in self.before:
            if block.kind == "options":
                found.update(json.loads(block.body))
        return found

    def __str__(self) -> str:
        return f"{self.dialect}:{self.tool}:{self.title}".replace(" ", "_")


def read_all() -> list[Case]:
    return [case for path in sorted(CONTRACTS.glob("*.md")) if path.stem != "README" for case in read(path)]


def without_ordinary_user(cases: list[Case]) -> list[Case]:
    """Return the cases that every user can play."""
    return [case for case in cases if not case.options.get("ordinary_user")]


@cache
def read(path: Path) -> list[Case]:
    """Return the cases of a contract; do not change them, because all tests share them."""
    cases: list[Case] = []
    tool, fence, kind, argument, body = "", "", "", "", list[str]()
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if fence:
            if line == fence:
                _add(cases[-1], kind, argument, "".join(f"{each}\n" for each in body))
                fence = ""
            else:
                body.append(line)
        elif heading := _HEADING.match(line):
            if heading[1] == "##":
                tool = heading[2].strip("`")
            else:
                cases.append(Case(path.stem, tool, heading[2], number))
        elif opened := _FENCE.match(line):
            fence, kind, argument, body = opened[1], opened[2], opened[3], []
    return [case for case in cases if case.steps]


def _add(case: Case, kind: str, argument: str, body: str) -> None:
    if kind == "call":
        case.steps.append(Step(argument or case.tool, body))
    elif case.steps:
        case.steps[-1].expected.append(Expectation(kind, argument, body))
    else:
        case.before.append(Expectation(kind, argument, body))


def build(case: Case, root: Path, known: Path | None = None) -> None:
    """Make the workspace that a case starts from, and the configuration of its user.

    `known` is the name of the workspace for those who work in it, if that is not `root`.
    """
    limits = {"terminal_quiet_seconds": 1.0} if case.options.get("patient") else {}
    limits |= case.options.get("limits", {})
    tokens = case.options.get("answer_tokens")
    if limits or tokens is not None:
        home = Path(os.environ["HANDRAIL_CONFIG_DIR"])
        home.mkdir(exist_ok=True)
        budget = "" if tokens is None else f"answer_tokens = {tokens}\n"
        lines = [f"{name} = {value}\n" for name, value in limits.items()]
        (home / "config.toml").write_text(f"{budget}[limits]\n" + "".join(lines))
    for block in case.before:
        if block.kind == "file":
            target = root / unquote(block.argument)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(block.body.encode())
        elif block.kind == "setup":
            for line in block.body.split("\n")[:-1]:
                _set_up(root, line, known or root)


def _set_up(root: Path, line: str, known: Path) -> None:
    word, _, rest = line.partition(" ")
    name, _, value = rest.partition(" ")
    target = root / unquote(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    if word == "mkdir":
        target.mkdir(parents=True, exist_ok=True)
    elif word == "bytes":
        target.write_bytes(_escaped(value))
    elif word == "lines":
        count, _, text = value.partition(" ")
        target.write_text(_numbered_lines(text, int(count)))
    elif word == "fill":
        target.write_bytes(b"x" * int(value))
    elif word == "files":
        count, _, text = value.partition(" ")
        target.mkdir(exist_ok=True)
        for n in range(1, int(count) + 1):
            (target / text.replace("{n}", f"{n:05}")).write_bytes(b"")
    elif word == "link":
        target.symlink_to(value.removeprefix("-> ").replace("$ROOT", str(known)))
    elif word == "fifo":
        os.mkfifo(target)
    elif word == "chmod":
        (root / value).chmod(int(name, 8))
    elif word == "touch":
        moment = datetime.fromisoformat(value).timestamp()
        os.utime(target, (moment, moment))
    else:
        raise ValueError(f"unknown set-up: {line}")


def _numbered_lines(text: str, count: int) -> str:
    """Return a line once for each number from one on, in the place of `{n}`; fast, because a case has a million."""
    before, mark, after = f"{text}\n".partition("{n}")
    return before + f"{after}{before}".join(map(str, range(1, count + 1))) + after if mark else before * count


def _escaped(text: str) -> bytes:
    return text.encode().decode("unicode_escape").encode("latin-1")


def params_of(step: Step, root: Path) -> Any:
    return json.loads(step.params.replace("$ROOT", json.dumps(str(root))[1:-1]))


def check(step: Step, result: dict[str, Any], root: Path, files: Path | None = None) -> None:
    """Compare an envelope with the expectations of a step; `files` is where the files are, if that is not the root."""
    failed = any(block.kind == "error" for block in step.expected)
    assert result["success"] is not failed, result
    for block in step.expected:
        body = block.body.replace("$ROOT", str(root))
        if block.kind == "text":
            assert _same(body[:-1], result["output"]), f"\n{result['output']!r}\n{body[:-1]!r}"
        elif block.kind == "answer":
            assert _same(json.loads(body), result["output"]), f"{result['output']}\n!=\n{body}"
        elif block.kind == "error":
            assert result["error"]["code"] == block.argument, result["error"]
            assert result["error"]["suggestion"], result["error"]
            assert _same(body[:-1], result["error"]["message"]), result["error"]
        elif block.kind == "suggestion":
            assert _same(body[:-1], result["error"]["suggestion"]), result["error"]
        elif block.kind in ("metadata", "warnings"):
            found = result.get(block.kind) or type(json.loads(body))()  # an envelope leaves out what is empty
            assert _same(json.loads(body), found), found
        elif block.kind == "affected":
            assert body.split("\n")[:-1] == result["files_affected"]
        elif block.kind == "output":
            assert json.loads(body) == result["output"], result["output"]
        elif block.kind in AFTERWARDS:
            _look(block, (files or root) / unquote(block.argument))
        else:
            raise ValueError(f"unknown expectation: {block.kind}")


def _look(block: Expectation, path: Path) -> None:
    if block.kind == "gone":
        assert not os.path.lexists(path)
    elif block.kind == "mode":
        assert f"{path.stat().st_mode & 0o7777:o}" == block.body.strip()
    else:
        assert path.read_bytes() == (block.body.encode() if block.kind == "after" else _escaped(block.body[:-1]))


def _same(expected: Any, found: Any) -> bool:
    """Compare two values; `<any>` and `<number>` stand for values that no contract can know."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(_same(expected[key], found[key]) for key in expected)
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(_same, expected, found))
    if expected == "<any>":
        return True
    if expected == "<number>":
        return isinstance(found, int | float) and not isinstance(found, bool)
    if isinstance(expected, str) and isinstance(found, str) and ("<number>" in expected or "<any>" in expected):
        pattern = re.escape(expected).replace("<number>", r"\d+(?:\.\d+)?").replace("<any>", ".*")
        return re.fullmatch(pattern, found, re.DOTALL) is not None
    return type(expected) is type(found) and bool(expected == found)
