"""Approvals over real transports: a server in a process of its own, reached over a pipe and over HTTP."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult, InputRequiredResult
from mcp_client import ERAS, call, envelope, over_http, over_stdio

WRITE = {"path": "a.txt", "content": "new\n"}
TOKENS = ("the-token-of-one-person", "the-token-of-another")


def _server(transport: str, root: Path) -> AbstractContextManager[Any]:
    return over_http("--root", root) if transport == "http" else nullcontext((over_stdio("--root", root), None))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_person_decides_over_every_transport(root: Path, transport: str, era: str) -> None:
    (root / "a.txt").write_text("old\n")
    said = ["no", "once"]

    async def person(context: Any, params: Any) -> ElicitResult:
        assert "-old\n+new" in params.message
        return ElicitResult(action="accept", content={"decision": said.pop(0), "reason": "not today"})

    with _server(transport, root) as (server, _):
        refused = call(server, "file.write", WRITE, era, elicitation_callback=person)
        kept = (root / "a.txt").read_text()
        allowed = call(server, "file.write", WRITE, era, elicitation_callback=person)
    assert "the person said no: not today" in refused["error"]["message"]
    assert (kept, allowed["success"], (root / "a.txt").read_text()) == ("old\n", True, "new\n")


@asynccontextmanager
async def _holder(url: str, token: str) -> AsyncIterator[Client]:
    async def person(context: Any, params: Any) -> ElicitResult:
        raise AssertionError("this test answers by hand")

    async with (
        httpx2.AsyncClient(timeout=60, headers={"authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http), mode=ERAS[1], elicitation_callback=person) as client,
    ):
        yield client


def test_a_question_is_answered_by_the_client_that_was_asked(root: Path, tmp_path: Path) -> None:
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
