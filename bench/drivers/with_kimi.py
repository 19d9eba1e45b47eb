"""Calls the tools as the agent makes them, without an approver: everything is approved."""

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

from kaos.path import KaosPath
from kimi_cli.soul.approval import ApprovalResult
from kimi_cli.tools.file.grep_local import Grep
from kimi_cli.tools.file.read import ReadFile
from kimi_cli.tools.file.replace import StrReplaceFile
from kimi_cli.tools.file.write import WriteFile
from kimi_cli.tools.shell import Shell
from kimi_cli.utils.environment import Environment

from bench.drivers.serve import serve


class Approve:
    async def request(self, *_: object, **__: object) -> Any:
        return ApprovalResult(True)


ENVIRONMENT = asyncio.run(Environment.detect())
RUNTIME: Any = SimpleNamespace(
    builtin_args=SimpleNamespace(KIMI_WORK_DIR=KaosPath(sys.argv[1])),
    additional_dirs=[],
    skills_dirs=[],
    environment=ENVIRONMENT,
)
ASK: Any = Approve()
read, grep = ReadFile(RUNTIME), Grep()
write, edit, shell = WriteFile(RUNTIME, ASK), StrReplaceFile(RUNTIME, ASK), Shell(ASK, ENVIRONMENT, RUNTIME)


async def _call(tool: Any, **arguments: Any) -> Any:
    result = await tool(tool.params(**arguments))
    if result.is_error:
        raise RuntimeError(result.message)
    return result.output


if __name__ == "__main__":
    serve(
        {
            "read": lambda path: _call(read, path=path),
            "page": lambda path, line, count: _call(read, path=path, line_offset=line, n_lines=count),
            "write": lambda path, content: _call(write, path=path, content=content),
            "edit": lambda path, old, new: _call(edit, path=path, edit={"old": old, "new": new}),
            "search": lambda path, text: _call(grep, pattern=text, path=path, output_mode="content"),
            "first": lambda path, text, limit: _call(
                grep, pattern=text, path=path, output_mode="content", head_limit=limit
            ),
            "count": lambda path, text: _call(grep, pattern=text, path=path, output_mode="count_matches"),
            "shell": lambda command: _call(shell, command=command),
        }
    )
