"""Tests the tool of verl with the real classes of its tools; the rest of the package needs PyTorch and is left out."""

import asyncio
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.sandbox


@pytest.fixture
def tool_class(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import the plug with `verl.tools` as it is installed, under a `verl` without its imports."""
    found = find_spec("verl")
    assert found is not None
    assert found.submodule_search_locations
    home = Path(next(iter(found.submodule_search_locations)))
    for name, place in (("verl", home), ("verl.tools", home / "tools"), ("verl.utils", home / "utils")):
        bare = ModuleType(name)
        bare.__path__ = [str(place)]
        monkeypatch.setitem(sys.modules, name, bare)
    trace = ModuleType("verl.utils.rollout_trace")
    trace.rollout_trace_op = lambda function: function  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "verl.utils.rollout_trace", trace)
    from handrail.fleet.plugs.verl_tool import VerlTool

    yield VerlTool
    for name in [each for each in sys.modules if each.startswith(("verl.", "handrail.fleet.plugs.verl"))]:
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_verl_tools_share_workspace_and_check_gives_reward(tool_class: Any, tree: str) -> None:
    config = {"tree": tree, "fleet": {"hosts": 1}, "check": "grep -q 'a + b' calc.py"}
    shell = tool_class({**config, "dialect": "codex", "tool": "shell"})
    read = tool_class({**config, "dialect": "file", "tool": "file.read"})
    assert shell.tool_schema.function.name == "shell"

    async def rollout() -> None:
        one, _ = await shell.create("1", workspace="w")
        two, _ = await read.create("2", workspace="w")
        alone, _ = await shell.create()
        assert await shell.calc_reward(one) == 0.0
        answer, reward, metrics = await shell.execute(one, {"command": "sed -i 's/a - b/a + b/' calc.py"})
        assert (reward, metrics["success"]) == (0.0, True)
        seen, _, _ = await read.execute(two, {"path": "calc.py"})
        assert "a + b" in seen.text
        assert await shell.calc_reward(one) == 1.0
        assert await shell.calc_reward(alone) == 0.0
        for tool, instance in ((shell, one), (read, two), (shell, alone)):
            await tool.release(instance)
        assert answer.text

    asyncio.run(rollout())
