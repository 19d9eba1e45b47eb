"""Offers a tool of a dialect to verl, each instance in a workspace of its own, with a command as its reward.

Name the class in the configuration of the tools: `class_name: handrail.fleet.plugs.verl_tool.VerlTool`, and in
`config` `dialect`, `tool`, `tree`, `check` and, under `fleet`, the options of `Fleet`. Tools whose `create` gets the
same `workspace` share one.
"""

import threading
from functools import partial
from typing import Any
from uuid import uuid4

from verl.tools.base_tool import BaseTool
from verl.tools.schemas import OpenAIFunctionToolSchema, ToolResponse

from handrail.dialects import load
from handrail.fleet.plugs.bridge import Bridge, threaded

_SHARED: dict[str, tuple[Bridge, set[str]]] = {}
_LOCK = threading.Lock()


class VerlTool(BaseTool):
    """Runs one tool of a dialect."""

    def __init__(self, config: dict[str, Any], tool_schema: OpenAIFunctionToolSchema | None = None) -> None:
        self._dialect, self._tool = config.get("dialect", "codex"), config.get("tool", "shell")
        self._names: dict[str, str] = {}
        super().__init__(config, tool_schema)

    def get_openai_tool_schema(self) -> OpenAIFunctionToolSchema:
        """Return the schema of the tool; verl asks for it if the configuration has none."""
        function = load(self._dialect).tools[self._tool].function()
        declared = function["parameters"]
        properties = {name: _plain(each) for name, each in declared["properties"].items()}
        parameters = {"type": "object", "properties": properties, "required": declared.get("required", [])}
        return OpenAIFunctionToolSchema.model_validate(
            {"type": "function", "function": {**function, "parameters": parameters}}
        )

    async def create(self, instance_id: str | None = None, **options: Any) -> tuple[str, ToolResponse]:
        """Open a workspace, or join the one with this name."""
        made = instance_id or str(uuid4())
        name = options.get("workspace") or made
        await threaded(partial(self._join, made, name, options.get("tree", self.config.get("tree"))))
        return made, ToolResponse()

    def _join(self, instance: str, name: str, tree: str | None) -> None:
        with _LOCK:
            if name not in _SHARED:
                _SHARED[name] = (Bridge.open(tree, self.config.get("fleet", {})), set())
            _SHARED[name][1].add(f"{self._tool}/{instance}")
            self._names[instance] = name

    def _bridge(self, instance: str) -> Bridge:
        return _SHARED[self._names[instance]][0]

    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **_: Any
    ) -> tuple[ToolResponse, float, dict[str, Any]]:
        """Make the call; the tool itself gives no reward."""
        workspace = self._bridge(instance_id).workspace
        result = await threaded(partial(workspace.call, self._dialect, self._tool, parameters))
        metrics = {"success": result.success, "execution_time_ms": result.execution_time_ms}
        return ToolResponse(text=result.text), 0.0, metrics

    async def calc_reward(self, instance_id: str, **_: Any) -> float:
        """Return 1.0 if the command `check` ends with 0; 0.0 otherwise."""
        check = self.config.get("check")
        if check is None:
            return 0.0
        done = await threaded(partial(self._bridge(instance_id).run, ["/bin/sh", "-c", check]))
        return float(done.ok)

    async def release(self, instance_id: str, **_: Any) -> None:
        """Close the workspace, once its last tool is released."""
        with _LOCK:
            name = self._names.pop(instance_id, None)
            if name is None or name not in _SHARED:
                return
            bridge, members = _SHARED[name]
            members.discard(f"{self._tool}/{instance_id}")
            if members:
                return
            del _SHARED[name]
        await threaded(partial(bridge.close))


def _plain(declared: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter in the smaller form that verl knows: its types, its description, its choices."""
    types = [each["type"] for each in declared.get("anyOf", [declared]) if "type" in each]
    made: dict[str, Any] = {"type": types[0] if len(types) == 1 else types or "string"}
    return made | {name: declared[name] for name in ("description", "enum") if name in declared}
