"""Makes calls through the reference implementations in the package `anthropic`."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
from references.comparing import Answer, ReferenceCase, params_of, plain


def agent_toolset(case: ReferenceCase, root: Path) -> list[Answer]:
    """Make the calls of a case through the agent toolset, whose own search is used, not ripgrep."""
    toolset: Any = import_module("anthropic.lib.tools.agent_toolset")
    toolset.shutil = SimpleNamespace(which=lambda _: None)  # for this module only
    failure = import_module("anthropic.lib.tools._beta_functions").ToolError

    async def make() -> list[Answer]:
        tools = {
            tool.name: tool for tool in toolset.beta_agent_toolset_20260401(toolset.AgentToolContext(workdir=root))
        }
        answers = []
        try:
            for name, params in case.calls:
                try:
                    answers.append(Answer(False, plain(await tools[name].call(params_of(params, root)), root)))
                except failure as error:
                    answers.append(Answer(True, plain(error.content, root)))
        finally:
            if tools["bash"].close is not None:
                await tools["bash"].close()
        return answers

    return anyio.run(make)


def memory_tool(case: ReferenceCase, base: Path) -> list[Answer]:
    """Make the calls of a case through the memory tool."""
    failure = import_module("anthropic.lib.tools._beta_functions").ToolError
    tool: Any = import_module("anthropic.lib.tools._beta_builtin_memory_tool").BetaLocalFilesystemMemoryTool(
        base_path=str(base)
    )
    answers = []
    for _, params in case.calls:
        try:
            answers.append(Answer(False, tool.call(params)))
        except failure as error:
            answers.append(Answer(True, error.content))
    return answers
