"""Tests approvals over MCP in both eras. In the stateless era an answer is bound to its question."""

import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, ElicitResult, InputRequiredResult
from support.mcp_client import ERAS, Serve, call, envelope, over_stdio, talk

from handrail import Workspace

MODERN = ERAS[1]
WRITE = {"path": "a.txt", "content": "new\n"}


class ScriptedUser:
    """Answers the questions of the client in turn."""

    def __init__(self, *answers: dict[str, Any], action: str = "accept", pause: float = 0) -> None:
        self.answers, self.action, self.pause, self.asked = [*answers], action, pause, list[Any]()

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.asked.append(params)
        await anyio.sleep(self.pause)
        content = self.answers.pop(0) if self.action == "accept" else None
        return ElicitResult(action=self.action, content=content)  # type: ignore[arg-type]


@pytest.fixture
def asking(root: Path) -> Any:
    (root / "a.txt").write_text("old\n")
    with Workspace(str(root), approve="ask") as workspace:
        yield workspace


@pytest.mark.parametrize("era", ERAS)
def test_mcp_question_shows_change_and_once_allows_once(asking: Workspace, root: Path, era: str, serve: Serve) -> None:
    asked_user = ScriptedUser({"decision": "once"}, {"decision": "no"})
    server = serve(asking)

    async def act(client: Client) -> list[Any]:
        return [
            envelope(await client.call_tool("file.write", WRITE)),
            envelope(await client.call_tool("file.write", {"path": "a.txt", "content": "newer\n"})),
        ]

    allowed, refused = talk(server, act, era, elicitation_callback=asked_user)
    assert (allowed["success"], allowed["files_affected"]) == (True, ["a.txt"])
    assert refused["error"]["code"] == "approval_denied"
    assert (root / "a.txt").read_text() == "new\n"
    assert asked_user.asked[0].message == (
        "Change a.txt at line 1\n-old\n+new\n\n"
        "Tool: file.write\nParameters:\n  path: a.txt\n  content: <4 bytes>\n"
        "Files affected: a.txt\nRisk level: dangerous\n\n"
        "once: allow this call\n"
        "session: allow in this session: create, change and delete any workspace file\n"
        "always: allow in this project: create, change and delete a.txt\n"
        "no: refuse this call"
    )
    schema = asked_user.asked[0].requested_schema
    assert [*schema["properties"]] == schema["required"] == ["decision"]
    decision = schema["properties"]["decision"]
    assert (decision["enum"], decision["default"]) == (["once", "session", "always", "no"], "once")
    assert decision["enumNames"] == [
        "once: allow this call",
        "session: edit any workspace file",
        "always: edit a.txt",
        "no: refuse this call",
    ]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("decision", "stored"), [("always", ["edit a.txt"]), ("session", [])])
def test_mcp_answer_that_keeps_rule_is_asked_once(
    asking: Workspace, root: Path, era: str, decision: str, stored: list[str], serve: Serve
) -> None:
    asked_user = ScriptedUser({"decision": decision})

    async def act(client: Client) -> list[bool]:
        first = await client.call_tool("file.write", WRITE)
        (root / "a.txt").write_text("old again\n")
        await client.call_tool("file.read", {"path": "a.txt"})
        second = await client.call_tool("file.write", WRITE)
        return [first.is_error, second.is_error]

    assert talk(serve(asking), act, era, elicitation_callback=asked_user) == [False, False]
    assert len(asked_user.asked) == 1
    assert [standing.rule.covers for standing in asking._rules.placed()] == stored


AT_ONCE = "no user answered: the client declined at once and asked no user"
NO_ANSWER = "no user answered: the client sent no valid answer"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("asked_user", "reason"),
    [
        (lambda: ScriptedUser({"decision": "no"}), "the user said no"),
        (lambda: ScriptedUser(action="decline"), AT_ONCE),
        (lambda: ScriptedUser(action="decline", pause=0.1), "the user said no"),
        (lambda: ScriptedUser(action="cancel"), "no user answered: the client closed the question without an answer"),
        (lambda: ScriptedUser({}), NO_ANSWER),
        (lambda: ScriptedUser({"decision": "yes, and everything else"}), NO_ANSWER),
        (lambda: ScriptedUser({"decision": ["once"]}), NO_ANSWER),
    ],
    ids=["no", "decline at once", "decline", "cancel", "empty", "unknown", "list"],
)
def test_mcp_answer_other_than_yes_denies(
    root: Path, era: str, asked_user: Callable[[], ScriptedUser], reason: str, serve: Serve
) -> None:
    told: list[str] = []
    (root / "a.txt").write_text("old\n")
    quick = {"quickest_answer_seconds": 300 if reason == AT_ONCE else 0.01}
    with Workspace(str(root), approve="ask", tell=told.append, limits=quick) as workspace:
        answer = call(serve(workspace), "file.write", WRITE, era, elicitation_callback=asked_user())
    assert answer["error"]["code"] == "approval_denied"
    assert answer["error"]["message"] == f"file.write was not approved: {reason}"
    assert ("--approve host" in "".join(told)) is reason.startswith("no user answered")
    assert (root / "a.txt").read_text() == "old\n"


@pytest.mark.parametrize("era", ERAS)
def test_mcp_client_without_elicitation_is_denied_with_remedy(root: Path, tmp_path: Path, era: str) -> None:
    async def act(client: Client) -> Any:
        return await client.call_tool("file.write", WRITE)

    with open(tmp_path / "stderr", "w") as log:
        result = talk(stdio_client(over_stdio("--root", root), log), act, era)
    assert envelope(result)["error"]["code"] == "approval_denied"
    assert result.content[1].text == "Ask the user: only they can allow it"
    assert (tmp_path / "stderr").read_text() == (
        "handrail: file.write: Use a client that supports elicitation, or start the server with --approve host or "
        "--approve auto, or keep a rule: "
        f"handrail approvals add 'edit a.txt' --root {root}\n"
    )
    assert [*root.iterdir()] == []


@pytest.mark.parametrize("era", ERAS)
def test_mcp_approve_host_asks_nothing(root: Path, era: str) -> None:
    asked_user = ScriptedUser()
    answer = call(
        over_stdio("--root", root, "--approve", "host"), "file.write", WRITE, era, elicitation_callback=asked_user
    )
    assert (answer["success"], asked_user.asked) == (True, [])


@pytest.mark.parametrize("era", ERAS)
def test_mcp_reading_and_empty_edits_ask_nothing(asking: Workspace, era: str, serve: Serve) -> None:
    asked_user = ScriptedUser()

    async def act(client: Client) -> list[bool]:
        return [
            (await client.call_tool(tool, params)).is_error
            for tool, params in (("file.read", {"path": "a.txt"}), ("file.write", {**WRITE, "content": "old\n"}))
        ]

    assert talk(serve(asking), act, era, elicitation_callback=asked_user) == [False, False]
    assert asked_user.asked == []


def test_mcp_call_cancelled_during_question_writes_nothing(asking: Workspace, root: Path, serve: Serve) -> None:
    async def main() -> None:
        thinking = anyio.Event()

        async def think(context: Any, params: Any) -> ElicitResult:
            thinking.set()
            await anyio.sleep_forever()
            raise AssertionError

        async with Client(serve(asking), mode="legacy", elicitation_callback=think) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "file.write", WRITE)
                await thinking.wait()
                tasks.cancel_scope.cancel()
            assert not (await client.call_tool("file.read", {"path": "a.txt"})).is_error

    anyio.run(main)
    assert (root / "a.txt").read_text() == "old\n"


def test_mcp_question_without_answer_in_time_denies(root: Path, serve: Serve) -> None:
    told: list[str] = []

    async def think(context: Any, params: Any) -> ElicitResult:
        await anyio.sleep_forever()
        raise AssertionError

    with Workspace(str(root), approve="ask", tell=told.append, limits={"question_seconds": 0}) as workspace:
        answer = call(serve(workspace), "file.write", WRITE, ERAS[0], elicitation_callback=think)
    denied = "file.write was not approved: no user answered: the question was open for 0 seconds"
    assert answer["error"]["message"] == denied
    assert "limits.question_seconds" in told[0]
    assert [*root.iterdir()] == []


# The stateless revision: the client sends the state of the question back, and may change it.

YES = {"approval": ElicitResult(action="accept", content={"decision": "once"})}


async def _no_person(context: Any, params: Any) -> ElicitResult:
    raise AssertionError("these tests answer by hand")


def _by_hand(serve: Serve, workspaces: list[Workspace], act: Callable[..., Any]) -> Any:
    async def main() -> Any:
        async with Client(serve(*workspaces), mode=MODERN, elicitation_callback=_no_person) as client:

            async def send(tool: str, arguments: dict[str, Any], **more: Any) -> Any:
                return await client.session.call_tool(tool, arguments, allow_input_required=True, **more)

            return await act(send)

    return anyio.run(main)


async def _question(send: Any, arguments: dict[str, Any] = WRITE) -> str:
    asked = await send("file.write", arguments)
    assert isinstance(asked, InputRequiredResult)
    assert [*(asked.input_requests or {})] == ["approval"]
    assert asked.request_state
    return asked.request_state


def _denied(result: Any) -> str:
    error = envelope(result)["error"]
    assert error["code"] == "approval_denied"
    message: str = error["message"]
    return message.partition(": ")[2]


def test_mcp_answer_counts_once(asking: Workspace, root: Path, serve: Serve) -> None:
    async def act(send: Any) -> list[Any]:
        state = await _question(send)
        first = await send("file.write", WRITE, input_responses=YES, request_state=state)
        (root / "a.txt").write_text("old\n")
        return [first, await send("file.write", WRITE, input_responses=YES, request_state=state)]

    first, second = _by_hand(serve, [asking], act)
    assert not first.is_error
    assert _denied(second) == "the answer was already used"
    assert (root / "a.txt").read_text() == "old\n"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("file.write", {"path": "a.txt", "content": "something else\n"}),
        ("file.write", {"path": "b.txt", "content": "new\n"}),
        ("file_write", WRITE),
        ("file.delete", {"path": "a.txt"}),
    ],
)
def test_mcp_answer_counts_only_for_its_call(
    asking: Workspace, root: Path, tool: str, arguments: dict[str, Any], serve: Serve
) -> None:
    async def act(send: Any) -> Any:
        return await send(tool, arguments, input_responses=YES, request_state=await _question(send))

    assert _denied(_by_hand(serve, [asking], act)) == "the state belongs to another call"
    assert (root / "a.txt").read_text() == "old\n"


def _forged(state: str) -> dict[str, str]:
    body, mac = state.split(".")
    claims = json.loads(urlsafe_b64decode(body))
    later = urlsafe_b64encode(json.dumps(claims | {"until": 9e12}).encode()).decode()
    return {"changed": f"{later}.{mac}", "no seal": body, "empty": "", "noise": "é.é", "cut": state[:-1]}


async def _refused_by_the_protocol(send: Any, state: str) -> None:
    """Check that the server answers a bad state with the error that the protocol requires."""
    with pytest.raises(MCPError, match="the state was not sealed by this server") as caught:
        await send("file.write", WRITE, input_responses=YES, request_state=state)
    assert caught.value.code == INVALID_PARAMS


@pytest.mark.parametrize("how", ["changed", "no seal", "empty", "noise", "cut"])
def test_mcp_forged_state_is_refused(asking: Workspace, root: Path, how: str, serve: Serve) -> None:
    async def act(send: Any) -> None:
        await _refused_by_the_protocol(send, _forged(await _question(send))[how])

    _by_hand(serve, [asking], act)
    assert (root / "a.txt").read_text() == "old\n"


def test_mcp_state_of_another_server_is_refused(asking: Workspace, root: Path, serve: Serve) -> None:
    state = _by_hand(serve, [asking], _question)
    _by_hand(serve, [asking], lambda send: _refused_by_the_protocol(send, state))
    assert (root / "a.txt").read_text() == "old\n"


def test_mcp_question_expires(root: Path, serve: Serve) -> None:
    with Workspace(str(root), approve="ask", limits={"question_seconds": 0}) as workspace:

        async def act(send: Any) -> Any:
            return await send("file.write", WRITE, input_responses=YES, request_state=await _question(send))

        assert _denied(_by_hand(serve, [workspace], act)) == "no user answered: the question was open for 0 seconds"
    assert [*root.iterdir()] == []


def test_mcp_clock_jump_revives_no_used_answer(
    asking: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    """Set the clock forward and back: the server must not forget a used answer, or the old state would count again."""
    right, other = time.time, {"path": "b.txt", "content": ""}

    async def act(send: Any) -> Any:
        used = await _question(send)
        await send("file.write", WRITE, input_responses=YES, request_state=used)
        monkeypatch.setattr(time, "time", lambda: right() + 3600)
        await send("file.write", other, input_responses=YES, request_state=await _question(send, other))
        monkeypatch.setattr(time, "time", right)
        (root / "a.txt").write_text("old\n")
        return await send("file.write", WRITE, input_responses=YES, request_state=used)

    assert _denied(_by_hand(serve, [asking], act)) == "the answer was already used"
    assert (root / "a.txt").read_text() == "old\n"


def test_mcp_changed_file_asks_again(asking: Workspace, root: Path, serve: Serve) -> None:
    async def act(send: Any) -> Any:
        state = await _question(send)
        (root / "a.txt").write_text("precious\n")
        again = await send("file.write", WRITE, input_responses=YES, request_state=state)
        assert "-precious" in again.input_requests["approval"].params.message
        assert (root / "a.txt").read_text() == "precious\n"
        return await send("file.write", WRITE, input_responses=YES, request_state=again.request_state)

    assert not _by_hand(serve, [asking], act).is_error
    assert (root / "a.txt").read_text() == "new\n"


def test_mcp_state_without_answer_denies(asking: Workspace, root: Path, serve: Serve) -> None:
    async def act(send: Any) -> Any:
        return await send("file.write", WRITE, request_state=await _question(send))

    assert _denied(_by_hand(serve, [asking], act)) == NO_ANSWER
    assert (root / "a.txt").read_text() == "old\n"


def test_mcp_answer_without_state_asks(asking: Workspace, root: Path, serve: Serve) -> None:
    async def act(send: Any) -> Any:
        return await send("file.write", WRITE, input_responses=YES)

    assert isinstance(_by_hand(serve, [asking], act), InputRequiredResult)
    assert (root / "a.txt").read_text() == "old\n"
