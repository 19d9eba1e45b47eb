"""Tests approvals over real transports: a separate server process, reached over a pipe and over HTTP."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import ElicitResult, InputRequiredResult
from support.mcp_client import ERAS, envelope, holding, over_http, over_stdio

WRITE = {"path": "a.txt", "content": "new\n"}
TOKENS = ("the-token-of-one-person", "the-token-of-another")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_mcp_user_decides_over_every_transport(root: Path, tmp_path: Path, transport: str, era: str) -> None:
    (root / "a.txt").write_text("old\n")
    said = ["no", "once"]

    async def asked_user(context: Any, params: Any) -> ElicitResult:
        assert "-old\n+new" in params.message
        return ElicitResult(action="accept", content={"decision": said.pop(0)})

    async def main(connect: Callable[[], AbstractAsyncContextManager[Client]]) -> tuple[Any, str, Any]:
        async with connect() as client:
            refused = envelope(await client.call_tool("file.write", WRITE))
            kept = (root / "a.txt").read_text()
            return refused, kept, envelope(await client.call_tool("file.write", WRITE))

    if transport == "http":
        (tmp_path / "tokens").write_text(TOKENS[0])
        with over_http("--root", root, "--token-file", tmp_path / "tokens") as (url, _):
            refused, kept, allowed = anyio.run(
                main, lambda: holding(url, TOKENS[0], era, elicitation_callback=asked_user)
            )
    else:
        server = over_stdio("--root", root)
        refused, kept, allowed = anyio.run(main, lambda: Client(server, mode=era, elicitation_callback=asked_user))
    assert "the user said no" in refused["error"]["message"]
    assert (kept, allowed["success"], (root / "a.txt").read_text()) == ("old\n", True, "new\n")


def _holder(url: str, token: str) -> AbstractAsyncContextManager[Client]:
    async def asked_user(context: Any, params: Any) -> ElicitResult:
        raise AssertionError("this test answers by hand")

    return holding(url, token, ERAS[1], elicitation_callback=asked_user)


def test_mcp_question_accepts_answer_only_from_asked_client(root: Path, tmp_path: Path) -> None:
    (root / "a.txt").write_text("old\n")
    (tmp_path / "tokens").write_text("\n".join(TOKENS))
    yes = {"approval": ElicitResult(action="accept", content={"decision": "once"})}

    async def main(url: str) -> tuple[Any, Any]:
        async with _holder(url, TOKENS[0]) as one, _holder(url, TOKENS[1]) as another:
            asked = await one.session.call_tool("file.write", WRITE, allow_input_required=True)
            assert isinstance(asked, InputRequiredResult)
            answer: Any = {"input_responses": yes, "request_state": asked.request_state}
            stolen = await another.session.call_tool("file.write", WRITE, allow_input_required=True, **answer)
            assert (root / "a.txt").read_text() == "old\n"
            return stolen, await one.session.call_tool("file.write", WRITE, allow_input_required=True, **answer)

    with over_http("--root", root, "--token-file", tmp_path / "tokens") as (url, _):
        stolen, allowed = anyio.run(main, url)
    assert "the state belongs to another call" in envelope(stolen)["error"]["message"]
    assert envelope(allowed)["success"]
