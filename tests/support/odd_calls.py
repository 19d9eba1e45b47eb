"""Puts odd values into every parameter of every tool and reports calls that misbehave."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Self

from handrail import Workspace
from handrail.model.paths import quote
from handrail.tools.schema import Params
from handrail.tools.tool import Tool, ToolResult
from support import tool_scenarios

PLAIN: dict[str, tuple[str, dict[str, Any]]] = {
    "gemini": ("read_file", {"absolute_path": "{root}/src/b.py"}),
    "context": ("read_file", {"path": "src/b.py"}),
    "copilot": ("read_file", {"path": "src/b.py"}),
    "file": ("file.read", {"path": "src/b.py"}),
    "codex": ("read_file", {"path": "src/b.py"}),
    "claude-code": ("Read", {"file_path": "{root}/src/b.py"}),
    "claude": ("str_replace_based_edit_tool", {"command": "view", "path": "{root}/src/b.py"}),
    "codex-2026": ("exec_command", {"cmd": "true"}),
    "bash": ("bash", {"command": "true"}),
    "openai": ("shell", {"commands": ["true"]}),
    "gemini-3": ("read_file", {"file_path": "src/b.py"}),
    "claude-agent": ("read", {"file_path": "src/b.py"}),
}
"""A plain call of each dialect, which must succeed after every odd call."""

Put = Callable[[dict[str, Any], object], dict[str, Any]]


class Arena:
    """Holds one session of a dialect and watches all files around the workspace."""

    def __init__(self, place: Path, dialect: str) -> None:
        self.root, self._dialect, self._numbers = place / "workspace", dialect, count()
        self.root.mkdir()
        tool_scenarios.plant(self.root)
        self._place, self._outside = place, dict(_outside(place))
        quick = {"terminal_quiet_seconds": 0.01, "terminal_wait_seconds": 0.1, "job_wait_seconds": 0.1}
        self._workspace = Workspace(str(self.root), approve="auto", durability="none", limits=quick)
        if dialect == "codex":
            self._workspace.call(dialect, "exec_command", {"session_id": "living", "cmd": "stty raw -echo; exec cat"})
        if dialect == "codex-2026":  # the first session has the number 1, as in the example
            self._workspace.call(dialect, "exec_command", {"cmd": "stty raw -echo; exec cat", "tty": True})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._workspace.close()

    def problems(self, kind: type, values: tuple[object, ...]) -> dict[tuple[str, str, str], str]:
        """Return the problems of each value in each parameter of a type, by tool, parameter and value."""
        found = {}
        for tool in (tool for tool in tool_scenarios.every_tool() if tool.dialect == self._dialect):
            for name, put in _places(tool.params, kind):
                for value in values:
                    with self._example(tool) as fine:
                        if problem := self._problem(tool, put(fine, value)):
                            found[tool.name, name, ascii(value)[:60]] = problem
        return found

    def problems_with_paths(self, paths: tuple[str, ...], *, reading: bool = False) -> dict[tuple[str, str, str], str]:
        """Return the problems with paths below the root, for all tools or only for those that read."""
        found = {}
        every = [tool for tool in tool_scenarios.every_tool() if tool.dialect == self._dialect]
        for tool in (tool for tool in every if not (reading and tool.requires_approval)):
            for name in tool.params.paths:
                for path in paths:
                    with self._example(tool) as made:
                        fine = made if name in made else tool_scenarios.example_with(tool, name, self.root)
                        top = tool.params.mount or self.root
                        given = quote(f"{top}/{path}" if fine[name].startswith("/") else path)
                        if problem := self._problem(tool, {**fine, name: given}):
                            found[tool.name, name, ascii(path)[:60]] = problem
        return found

    @contextmanager
    def _example(self, tool: Tool) -> Iterator[dict[str, Any]]:
        """Yield the parameters of a call that succeeds, on a new file."""
        number = next(self._numbers)
        file = self.root / f"a{number}.txt"
        file.write_text("one\n")
        fine = json.dumps(tool_scenarios.example(tool, self.root))
        made: dict[str, Any] = json.loads(fine.replace("a.txt", file.name).replace("/new", f"/new{number}"))
        tool_scenarios.prepare(self._workspace, tool, made)
        yield made | ({"session_id": "living"} if (tool.dialect, tool.name) == ("codex", "write_stdin") else {})
        file.unlink(missing_ok=True)

    def _problem(self, tool: Tool, params: dict[str, Any]) -> str:
        """Return what is wrong with a call, its answer or the files that it left; empty if nothing is."""
        result = self._workspace.call(tool.dialect, tool.name, params)
        json.dumps(result.to_dict()).encode()
        if result.error is not None and (result.error.code == "internal_error" or not result.error.message):
            return str(result.error)
        if dict(_outside(self._place)) != self._outside:
            return "something outside the workspace was changed"
        return "" if self._plain().success else "the next call fails"

    def _plain(self) -> ToolResult:
        name, params = PLAIN[self._dialect]
        return self._workspace.call(
            self._dialect, name, json.loads(json.dumps(params).replace("{root}", str(self.root)))
        )


def _outside(place: Path) -> Iterator[tuple[str, bytes]]:
    for directory, names, files in os.walk(place):
        if directory == str(place):
            names.remove("workspace")
        yield directory, b""
        for name in files:
            path = os.path.join(directory, name)
            yield path, Path(path).read_bytes()


def _places(params: type[Params], kind: type) -> Iterator[tuple[str, Put]]:
    """Yield each parameter of a type, also in lists and objects, with a function that sets it."""
    for name, declared in params.fields.items():
        (item,) = declared.args if declared.origin is list else (None,)
        if declared.kind is kind:
            yield name, partial(_put, name)
        elif item is kind:
            yield name, partial(_put_in_list, name)
        elif isinstance(item, type) and issubclass(item, Params):
            for inner, put in _places(item, kind):
                yield f"{name}/{inner}", partial(_put_in_object, name, put)


def _put(name: str, fine: dict[str, Any], value: object) -> dict[str, Any]:
    return {**fine, name: value}


def _put_in_list(name: str, fine: dict[str, Any], value: object) -> dict[str, Any]:
    return {**fine, name: [value]}


def _put_in_object(name: str, put: Put, fine: dict[str, Any], value: object) -> dict[str, Any]:
    return {**fine, name: [put(fine[name][0], value)]}
