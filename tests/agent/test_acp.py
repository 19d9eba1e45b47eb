"""Tests `handrail acp` with the protocol's own client."""

import asyncio
import fcntl
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from agent.conftest import call
from support.command_line import ARGV

acp = pytest.importorskip("acp", reason="handrail[agent] is not installed: make test-agent")

Script = Callable[..., str]
WRITE = {"text": "I write.", "calls": [call("file.write", path="a.txt", content="new\n")]}
DONE = {"text": "Done."}
COMMANDS = ("--dialect", "bash", "--approve", "auto")


class Editor:
    """An editor that records what it is shown, and answers each question with one option."""

    def __init__(self, option: str | None = "once") -> None:
        self.option, self.updates, self.asked = option, list[Any](), list[Any]()
        self.called, self.agent = asyncio.Event(), cast("Any", None)

    def on_connect(self, conn: Any) -> None: ...

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        if update.session_update == "tool_call":
            self.called.set()

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        self.asked.append((tool_call, [each.option_id for each in options]))
        if self.option is None:
            return acp.RequestPermissionResponse(outcome={"outcome": "cancelled"})
        return acp.RequestPermissionResponse(outcome={"outcome": "selected", "option_id": self.option})

    def text(self) -> str:
        chunks = [each for each in self.updates if each.session_update == "agent_message_chunk"]
        return "".join(each.content.text for each in chunks)


@asynccontextmanager
async def connected(editor: Editor, *arguments: str) -> AsyncIterator[Any]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*ARGV, "acp", *arguments, stdin=pipe, stdout=pipe)
    connection = acp.connect_to_agent(editor, process.stdin, process.stdout)
    try:
        await connection.initialize(protocol_version=1)
        yield connection
    finally:
        await connection.close()
        assert process.stdin
        process.stdin.close()
        await process.wait()


def test_acp_turn_asks_with_diff_and_changes_file(root: Path, script: Script) -> None:
    (root / "a.txt").write_text("old\n")
    editor = Editor()

    async def talk() -> str:
        async with connected(editor, "--model", script(WRITE, DONE)) as agent:
            session = await agent.new_session(cwd=str(root), mcp_servers=[])
            done = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("write")])
            return str(done.stop_reason)

    assert asyncio.run(talk()) == "end_turn"
    ((asked, options),) = editor.asked
    diff = asked.content[0]
    assert (diff.path, diff.old_text, diff.new_text) == (f"{root}/a.txt", "old\n", "new\n")
    assert options == ["once", "session", "always", "no"]
    assert (root / "a.txt").read_text() == "new\n"
    assert editor.text() == "I write.Done."
    kinds = [update.session_update for update in editor.updates]
    assert kinds.index("tool_call") < kinds.index("tool_call_update")
    assert editor.updates[kinds.index("tool_call")].kind == "edit"
    assert editor.updates[kinds.index("tool_call_update")].status == "completed"


@pytest.mark.parametrize(("option", "said"), [("no", "the user said no"), (None, "no user answered")])
def test_acp_denied_question_changes_nothing(root: Path, script: Script, option: str | None, said: str) -> None:
    editor = Editor(option)

    async def talk() -> None:
        async with connected(editor, "--model", script(WRITE, DONE)) as agent:
            session = await agent.new_session(cwd=str(root), mcp_servers=[])
            await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("write")])

    asyncio.run(talk())
    assert list(root.iterdir()) == []
    (result,) = [each for each in editor.updates if each.session_update == "tool_call_update"]
    assert result.status == "failed"
    assert said in result.content[0].content.text


def test_acp_session_option_is_not_asked_again(root: Path, script: Script) -> None:
    editor = Editor("session")
    other = {"calls": [call("file.write", path="a.txt", content="other\n")]}

    async def talk() -> None:
        async with connected(editor, "--model", script(WRITE, other, DONE, WRITE, DONE)) as agent:
            session = await agent.new_session(cwd=str(root), mcp_servers=[])
            for _ in range(2):
                await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("write")])

    asyncio.run(talk())
    assert len(editor.asked) == 2
    assert (root / "a.txt").read_text() == "new\n"


@pytest.mark.sandbox
def test_acp_cancel_ends_turn_and_next_prompt_works(root: Path, script: Script) -> None:
    editor = Editor()
    waits = {"calls": [call("bash", command="sleep 600")]}

    async def talk() -> list[str]:
        async with connected(editor, "--model", script(waits, DONE), "--dialect", "bash") as agent:
            session = await agent.new_session(cwd=str(root), mcp_servers=[])
            turn = asyncio.ensure_future(agent.prompt(session_id=session.session_id, prompt=[acp.text_block("wait")]))
            await editor.called.wait()
            await agent.cancel(session_id=session.session_id)
            first = await turn
            second = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("go on")])
            return [first.stop_reason, second.stop_reason]

    assert asyncio.run(talk()) == ["cancelled", "end_turn"]
    assert editor.text() == "Done."


def test_acp_two_sessions_ask_and_work_at_once(tmp_path: Path, script: Script) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    both = asyncio.Barrier(2)

    class Patient(Editor):
        async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
            await both.wait()  # each turn waits for the question of the other one
            return await super().request_permission(session_id, tool_call, options)

    editor = Patient()

    for each in roots:
        each.mkdir()

    async def turn(agent: Any, root: Path) -> str:
        session = await agent.new_session(cwd=str(root), mcp_servers=[])
        done = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("write" * 100_000)])
        return str(done.stop_reason)

    async def talk() -> list[str]:
        async with connected(editor, "--model", script(WRITE, DONE)) as agent:
            return await asyncio.gather(*(turn(agent, root) for root in roots))

    assert asyncio.run(talk()) == ["end_turn", "end_turn"]
    assert [(root / "a.txt").read_text() for root in roots] == ["new\n", "new\n"]
    assert sorted(asked.content[0].path for asked, _ in editor.asked) == [f"{root}/a.txt" for root in roots]


def test_acp_cancel_in_question_changes_nothing(root: Path, script: Script) -> None:
    class Cancelling(Editor):
        async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
            await self.agent.cancel(session_id=session_id)
            return acp.RequestPermissionResponse(outcome={"outcome": "cancelled"})

    editor = Cancelling()

    async def talk() -> list[str]:
        async with connected(editor, "--model", script(WRITE, DONE)) as editor.agent:
            session = await editor.agent.new_session(cwd=str(root), mcp_servers=[])
            ask = {"session_id": session.session_id, "prompt": [acp.text_block("write")]}
            return [(await editor.agent.prompt(**ask)).stop_reason for _ in range(2)]

    assert asyncio.run(talk()) == ["cancelled", "end_turn"]
    assert list(root.iterdir()) == []


@pytest.mark.sandbox
def test_acp_second_prompt_of_busy_session_is_refused(root: Path, script: Script) -> None:
    editor = Editor()
    waits = {"calls": [call("bash", command="until [ -e go ]; do sleep 0.05; done")]}

    async def talk() -> str:
        async with connected(editor, "--model", script(waits, DONE), *COMMANDS) as agent:
            session = await agent.new_session(cwd=str(root), mcp_servers=[])
            ask = {"session_id": session.session_id, "prompt": [acp.text_block("wait")]}
            turn = asyncio.ensure_future(agent.prompt(**ask))
            await editor.called.wait()
            with pytest.raises(acp.RequestError) as refused:
                await agent.prompt(**ask)
            assert "works on another task" in str(refused.value.data)
            (root / "go").touch()
            return str((await turn).stop_reason)

    assert asyncio.run(talk()) == "end_turn"
    assert editor.text() == "Done."


@pytest.mark.sandbox
@pytest.mark.parametrize("busy", ["question", "command"])
def test_acp_client_that_disappears_ends_everything(root: Path, script: Script, tmp_path: Path, busy: str) -> None:
    waits = {"calls": [call("bash", command="exec 9> lock; flock 9; echo begun > pipe; sleep 600")]}
    asked = asyncio.Event()
    os.mkfifo(root / "pipe")

    class Gone(Editor):
        async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
            asked.set()
            return await asyncio.Event().wait()

    async def talk() -> int:
        approve = COMMANDS if busy == "command" else COMMANDS[:2]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *ARGV, "acp", "--model", script(waits, DONE), *approve, stdin=pipe, stdout=pipe
        )
        agent = acp.connect_to_agent(Gone(), process.stdin, process.stdout)
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd=str(root), mcp_servers=[])
        turn = asyncio.ensure_future(agent.prompt(session_id=session.session_id, prompt=[acp.text_block("go")]))
        await (asked.wait() if busy == "question" else asyncio.to_thread((root / "pipe").read_text))
        turn.cancel()
        assert process.stdin
        process.stdin.close()
        return await process.wait()

    assert asyncio.run(talk()) == 0
    (path,) = Path(os.environ["HANDRAIL_STATE_DIR"]).rglob("trajectories/*.json")
    assert json.loads(path.read_text())["extra"]["status"] == "stopped"
    assert (root / "lock").exists() == (busy == "command")
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits for as long as a process of the command lives


def test_acp_unknown_directory_is_a_request_error(root: Path, script: Script) -> None:
    async def talk() -> None:
        async with connected(Editor(), "--model", script(DONE)) as agent:
            await agent.new_session(cwd=str(root / "nowhere"), mcp_servers=[])

    with pytest.raises(acp.RequestError):
        asyncio.run(talk())


@pytest.mark.parametrize("below", ["", ".."])
def test_acp_session_in_home_is_refused(
    root: Path, script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, below: str
) -> None:
    monkeypatch.setenv("HOME", str(root))
    (tmp_path / "link").symlink_to(root / below)

    async def talk(cwd: Path) -> Any:
        async with connected(Editor(), "--model", script(DONE)) as agent:
            with pytest.raises(acp.RequestError) as refused:
                await agent.new_session(cwd=str(cwd), mcp_servers=[])
            return refused.value.data

    for cwd in (root / below, tmp_path / "link"):
        why = "it is or contains your home directory; open a project in the editor"
        assert asyncio.run(talk(cwd)) == {"reason": f"cannot use {cwd} as the workspace: {why}"}
