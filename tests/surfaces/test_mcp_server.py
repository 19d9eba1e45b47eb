"""Tests what the MCP server lists and answers, with a real client in both eras."""

import json
import threading
import time
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from support.mcp_client import ERAS, Serve, call, envelope, over_stdio, talk

from handrail import Workspace
from handrail.dialects import load
from handrail.model.effects import Effect
from handrail.model.faults import NotFound
from handrail.runtime.call import Call
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect

pytestmark = pytest.mark.parametrize("era", ERAS)


async def _tools(client: Client) -> list[dict[str, Any]]:
    return [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools
    ]


@pytest.mark.parametrize("dialect", ["gemini", "context", "copilot", "file", "codex"])
def test_mcp_tools_listed_in_order_with_exact_schemas(
    workspace: Workspace, era: str, dialect: str, serve: Serve
) -> None:
    listed = talk(serve(workspace, dialect=dialect), _tools, era)
    declared = [*load(dialect).tools.values()]
    assert [tool["name"] for tool in listed] == [tool.name for tool in declared]
    assert [tool["inputSchema"] for tool in listed] == [tool.params.schema() for tool in declared]
    assert [tool.get("outputSchema") for tool in listed] == [tool.output for tool in declared]


def test_mcp_annotations_follow_effects(workspace: Workspace, era: str, serve: Serve) -> None:
    listed = talk(serve(workspace), _tools, era)
    hints = {tool["name"]: [*tool["annotations"].values()] for tool in listed}
    assert [*listed[0]["annotations"]] == ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
    assert hints["file.read"] == [True, False, True, False]
    assert hints["file.write"] == [False, True, False, False]
    assert hints["file.delete"] == [False, True, True, False]


def test_mcp_object_result_has_structured_content_and_text(
    workspace: Workspace, root: Path, era: str, serve: Serve
) -> None:
    (root / "a.txt").write_text("one\n")

    async def act(client: Client) -> Any:
        return await client.call_tool("file.read", {"path": "a.txt"})

    result = talk(serve(workspace), act, era)
    expected = {"content": "     1\tone", "total_lines": 1, "truncated": False}
    assert result.structured_content == expected
    assert [json.loads(block.text) for block in result.content] == [expected]


def test_mcp_warning_beside_object_is_in_structured_content(
    workspace: Workspace, root: Path, era: str, serve: Serve
) -> None:
    """Some clients show a model the structured content alone."""
    root.rename(root.with_name("elsewhere"))
    root.mkdir()
    (root / "a.txt").write_text("one\n")

    async def act(client: Client) -> Any:
        return await client.call_tool("file.list", {"path": "."})

    result = talk(serve(workspace), act, era)
    first, second = result.content
    assert result.structured_content == {**json.loads(first.text), "hints": second.text}
    assert second.text.startswith("Warning: ")


def test_mcp_image_with_other_fields_has_no_structured_content(
    workspace: Workspace, root: Path, era: str, serve: Serve
) -> None:
    """A client that shows a model the structured content alone would leave out the image."""
    (root / "a.png").write_bytes(b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"))

    async def act(client: Client) -> Any:
        (tool,) = [each for each in (await client.list_tools()).tools if each.name == "view_image"]
        return tool.output_schema, await client.call_tool("view_image", {"path": "a.png"})

    schema, result = talk(serve(workspace, dialect="codex-2026"), act, era)
    assert schema is None
    assert [block.type for block in result.content] == ["image"]
    assert result.structured_content is None
    assert result.meta["handrail/result"]["output"] == {"detail": "high"}


def test_mcp_fault_is_result_not_protocol_error(workspace: Workspace, era: str, serve: Serve) -> None:
    async def act(client: Client) -> list[Any]:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("file.read", {"path": "gone"}),
            ("file.read", {"path": 7}),
            ("nonsense", {}),
        ]
        return [await client.call_tool(tool, params) for tool, params in calls]

    results = talk(serve(workspace), act, era)
    assert [result.is_error for result in results] == [True, True, True]
    assert [envelope(result)["error"]["code"] for result in results] == [
        "file_not_found",
        "invalid_parameters",
        "unknown_tool",
    ]
    assert all(result.structured_content is None for result in results)


def test_mcp_media_result_is_image_audio_or_blob(workspace: Workspace, root: Path, era: str, serve: Serve) -> None:
    data = b"\x89PNG\r\n\x1a\nnot really"
    for name in ("a.png", "b.mp3", "c.pdf"):
        (root / name).write_bytes(data)

    async def act(client: Client) -> list[Any]:
        return [
            (await client.call_tool("read_file", {"absolute_path": str(root / name)})).content[0]
            for name in ("a.png", "b.mp3", "c.pdf")
        ]

    image, audio, blob = talk(serve(workspace, dialect="gemini"), act, era)
    text = b64encode(data).decode()
    assert (image.type, image.mime_type, image.data) == ("image", "image/png", text)
    assert (audio.type, audio.mime_type, audio.data) == ("audio", "audio/mpeg", text)
    assert (blob.type, blob.resource.mime_type, blob.resource.blob) == ("resource", "application/pdf", text)


def test_mcp_several_roots_are_chosen_by_argument(tmp_path: Path, era: str) -> None:
    roots = [tmp_path / "one" / "app", tmp_path / "two" / "app", tmp_path / "lib"]
    for root in roots:
        root.mkdir(parents=True)
        (root / "who.txt").write_text(f"{root.parent.name}\n")

    async def act(client: Client) -> Any:
        schema = (await client.list_tools()).tools[0].input_schema
        named = [
            envelope(await client.call_tool("file.read", {"workspace": name, "path": "who.txt"}))["output"]["content"]
            for name in ("app", "app-2", "lib")
        ]
        wrong = [
            envelope(await client.call_tool("file.read", {**extra, "path": "who.txt"}))["error"]["message"]
            for extra in ({}, {"workspace": "other"}, {"workspace": ["app"]})
        ]
        return schema, named, wrong

    schema, named, wrong = talk(over_stdio(*(part for root in roots for part in ("--root", root))), act, era)
    assert schema["properties"]["workspace"]["enum"] == ["app", "app-2", "lib"]
    assert schema["required"] == ["workspace", "path"]
    assert named == ["     1\tone", "     1\ttwo", f"     1\t{tmp_path.name}"]
    assert wrong == [
        "Missing required parameter 'workspace'",
        "Parameter 'workspace' must be one of app, app-2, lib, not 'other'",
        "Parameter 'workspace' must be one of app, app-2, lib, not '['app']'",
    ]


def test_mcp_read_only_offers_no_writing_tools(root: Path, era: str) -> None:
    async def act(client: Client) -> Any:
        names = [tool.name for tool in (await client.list_tools()).tools]
        return names, envelope(await client.call_tool("file.write", {"path": "a", "content": "x"}))

    names, refused = talk(over_stdio("--root", root, "--read-only"), act, era)
    assert names == [name for name, tool in load("file").tools.items() if not tool.requires_approval]
    assert refused["error"]["code"] == "approval_denied"
    assert [*root.iterdir()] == []


def test_mcp_tools_option_limits_tools(root: Path, era: str) -> None:
    async def act(client: Client) -> Any:
        names = [tool.name for tool in (await client.list_tools()).tools]
        return names, envelope(await client.call_tool("file.read", {"path": "a"}))["error"]["code"]

    server = over_stdio("--root", root, "--tools", "file_list,file.delete", "--approve", "auto")
    assert talk(server, act, era) == (["file.delete", "file.list"], "unknown_tool")


def test_mcp_safe_names_are_listed_and_always_accepted(
    workspace: Workspace, root: Path, era: str, serve: Serve
) -> None:
    (root / "a.txt").write_text("one\n")
    listed = talk(serve(workspace, safe_names=True), _tools, era)
    assert all("." not in tool["name"] for tool in listed)
    for server in (serve(workspace, safe_names=True), serve(workspace)):
        assert call(server, "file_read", {"path": "a.txt"}, era)["tool"] == "file.read"


class _Wait(Params):
    name: str = field("What to wait for.", default="")


def _probe() -> tuple[Dialect, dict[str, threading.Event]]:
    """Make a dialect with tools that fail, wait for each other, or wait to be cancelled."""
    probe, events = Dialect("probe"), {"go": threading.Event(), "began": threading.Event(), "ended": threading.Event()}

    @probe.tool("break", Effect.READ)
    def broken(_p: _Wait, _c: Call) -> str:
        raise ZeroDivisionError

    @probe.tool("wait", Effect.READ)
    def wait(_p: _Wait, _c: Call) -> str:
        events["began"].set()
        return "went" if events["go"].wait(300) else "waited in vain"

    @probe.tool("go", Effect.READ)
    def go(_p: _Wait, _c: Call) -> str:
        events["go"].set()
        return "gone"

    @probe.tool("endless", Effect.READ)
    def endless(_p: _Wait, c: Call) -> str:
        events["began"].set()
        assert c.cancel
        if c.cancel.wait(300):
            events["ended"].set()
        raise NotFound("the end")

    return probe, events


def test_mcp_bug_in_tool_is_answered_and_server_continues(workspace: Workspace, era: str, serve: Serve) -> None:
    probe, _ = _probe()

    async def act(client: Client) -> list[str]:
        first = envelope(await client.call_tool("break", {}))
        second = await client.call_tool("go", {})
        return [first["error"]["code"], envelope(second)["output"]]

    assert talk(serve(workspace, dialect=probe), act, era) == ["internal_error", "gone"]


def test_mcp_slow_call_does_not_block_others(workspace: Workspace, era: str, serve: Serve) -> None:
    probe, _ = _probe()

    async def act(client: Client) -> dict[str, str]:
        said: dict[str, str] = {}

        async def one(tool: str) -> None:
            said[tool] = envelope(await client.call_tool(tool, {}))["output"]

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "wait")
            tasks.start_soon(one, "go")
        return said

    assert talk(serve(workspace, dialect=probe), act, era) == {"wait": "went", "go": "gone"}


def test_mcp_cancelled_request_ends_call(workspace: Workspace, era: str, serve: Serve) -> None:
    probe, events = _probe()

    async def act(client: Client) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "endless", {})
            await anyio.to_thread.run_sync(events["began"].wait, 300)
            tasks.cancel_scope.cancel()
        await anyio.to_thread.run_sync(events["ended"].wait, 300)

    talk(serve(workspace, dialect=probe), act, era)
    assert events["ended"].is_set()


def test_mcp_long_call_reports_progress(workspace: Workspace, era: str, serve: Serve) -> None:
    probe, events = _probe()
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))
        if len(heard) == 2:
            events["go"].set()

    async def act(client: Client) -> Any:
        return envelope(await client.call_tool("wait", {}, progress_callback=hear))["output"]

    started = time.monotonic()
    assert talk(serve(workspace, dialect=probe), act, era) == "went"
    assert heard[:2] == [(1.0, "Running for 1 s"), (2.0, "Running for 2 s")], time.monotonic() - started


def test_mcp_print_in_tool_does_not_reach_protocol(root: Path, era: str) -> None:
    """Print in a tool: the text goes to standard error."""
    import os
    import sys

    from mcp.client.stdio import StdioServerParameters

    program = (
        "import sys, handrail.dialects.file as f\n"
        "from handrail.runtime.file_access import Files\n"
        "read = Files.page\n"
        "def noisy(*a, **k):\n"
        "    print('stray'); sys.stdout.flush(); import os; os.system('echo stray'); return read(*a, **k)\n"
        "Files.page = noisy\n"
        "from handrail.surfaces.cli import main\n"
        f"main(['mcp', '--dialect', 'file', '--root', {str(root)!r}])\n"
    )
    (root / "a.txt").write_text("one\n")
    server = StdioServerParameters(command=sys.executable, args=["-c", program], env=dict(os.environ))
    assert call(server, "file.read", {"path": "a.txt"}, era)["output"]["total_lines"] == 1


def test_mcp_lone_surrogate_in_result_is_replaced(workspace: Workspace, era: str, serve: Serve) -> None:
    """Return a lone surrogate: UTF-8 messages cannot carry it."""
    probe = Dialect("probe")

    @probe.tool("echo", Effect.READ)
    def echo(p: _Wait, c: Call) -> dict[str, Any]:
        c.metadata["names"] = [p.name]
        return {p.name: "a\udc80b"}

    async def act(client: Client) -> Any:
        return await client.call_tool("echo", {"name": "plain"})

    result = talk(serve(workspace, dialect=probe), act, era)
    result.model_dump_json()
    assert (result.structured_content, envelope(result)["metadata"]) == ({"plain": "a?b"}, {"names": ["plain"]})


def test_mcp_instructions_name_roots(workspace: Workspace, root: Path, era: str, serve: Serve) -> None:
    async def act(client: Client) -> str | None:
        return client.instructions

    if era == "legacy":  # without a handshake they are in server/discover, which a pinned version skips
        assert (
            talk(serve(workspace), act, era)
            == f"The workspace is {root}. Tools cannot reach anything outside the workspace."
        )
    else:
        assert str(root) in talk(serve(workspace), act, "auto")
