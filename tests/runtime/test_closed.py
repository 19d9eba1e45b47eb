"""Tests that a closed workspace refuses calls and never uses a file descriptor whose number was reused."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from handrail import Question, ToolResult, ToolRouter, Workspace
from handrail.errors import ClosedError
from handrail.model.effects import Effect
from handrail.runtime.call import Call
from handrail.tools.schema import Params
from handrail.tools.tool import Dialect

WRITE = {"path": "a.txt", "content": "written\n"}
slow = Dialect("slow")


class Nothing(Params):
    pass


class Gate:
    """Holds a running call until a test opens the gate."""

    reached, opened = threading.Event(), threading.Event()


@slow.tool("dawdle", Effect.READ)
def dawdle(p: Nothing, c: Call) -> str:
    """Reads a file after the gate is opened."""
    Gate.reached.set()
    Gate.opened.wait()
    return c.files.read("a.txt").data.decode()


def code(result: ToolResult) -> str:
    return "" if result.error is None else result.error.code


@contextmanager
def every_free_number_taken_by(directory: Path) -> Iterator[None]:
    """Reuse all free descriptor numbers for this directory; a call with a closed handle would work in it."""
    handles = [os.open(directory, os.O_RDONLY) for _ in range(64)]
    yield
    for handle in handles:
        os.close(handle)


@contextmanager
def closed_gate() -> Iterator[None]:
    Gate.reached.clear()
    Gate.opened.clear()
    try:
        yield
    finally:
        Gate.opened.set()  # otherwise a failed test would wait for ever


@pytest.mark.parametrize("again", [False, True])
def test_workspace_closed_refuses_calls_and_touches_nothing(root: Path, tmp_path: Path, *, again: bool) -> None:
    (root / "a.txt").write_text("ours\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("theirs\n")
    workspace = Workspace(str(root), approve="auto")
    second = workspace.session()
    assert workspace.call("file", "file.write", WRITE).success
    history = workspace.history()
    workspace.close()
    if again:
        workspace.close()
        second.close()
    with every_free_number_taken_by(other):
        answers = [
            workspace.call("file", "file.read", {"path": "a.txt"}),
            workspace.call("file", "file.write", WRITE),
            workspace.call("gemini", "run_shell_command", {"command": "echo gone > a.txt"}),
            second.tools("file").call("file.write", WRITE),
        ]
        assert [code(answer) for answer in answers] == ["session_closed"] * 4
        for use in (workspace.session, history.undo):
            with pytest.raises(ClosedError):
                use()
    assert (root / "a.txt").read_text() == "written\n"
    assert (other / "a.txt").read_text() == "theirs\n"


def test_boundary_closed_forgets_its_file_descriptor(root: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("theirs\n")
    workspace = Workspace(str(root))
    reader = workspace._services.reader
    workspace.close()
    with every_free_number_taken_by(tmp_path), pytest.raises(Exception, match="Bad file descriptor"):
        reader.read("a.txt")


def test_close_ends_commands_and_waits_for_running_calls(root: Path) -> None:
    (root / "a.txt").write_text("ours\n")
    os.mkfifo(root / "held")
    workspace = Workspace(str(root), approve="auto", sandbox="off")
    client = workspace.session()
    router = ToolRouter(slow, client._session, client.log)
    holding = ("run_shell_command", {"command": "exec 3> held; echo >&3; exec sleep 1000"})
    with ThreadPoolExecutor() as pool, closed_gate():
        command = pool.submit(client.tools("gemini").call, *holding)
        answer = pool.submit(router.call, "dawdle")
        with (root / "held").open() as held:
            held.readline()
            Gate.reached.wait()
            closing = [pool.submit(workspace.close), pool.submit(client.close)]
            held.read()  # end of file: the command has ended, so closing has begun
        assert code(router.call("dawdle")) == "session_closed"
        assert not any(each.done() for each in closing)
        Gate.opened.set()
        assert answer.result().output == "ours\n"
        assert code(command.result()) != "internal_error"


def test_approval_after_close_writes_nothing(root: Path) -> None:
    shown, answered = threading.Event(), threading.Event()

    def ask(_: Question) -> bool:
        shown.set()
        answered.wait()
        return True

    workspace = Workspace(str(root), approver=ask)
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(workspace.call, "file", "file.write", WRITE)
        shown.wait()
        workspace.close()  # close() does not wait for a user who may be away
        answered.set()
        assert code(answer.result()) == "session_closed"
    assert not list(root.iterdir())


def test_approver_may_close_workspace(root: Path) -> None:
    def ask(_: Question) -> bool:
        workspace.close()
        return True

    workspace = Workspace(str(root), approver=ask)
    assert code(workspace.call("file", "file.write", WRITE)) == "session_closed"
    assert not list(root.iterdir())


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # from Python 3.12 on
def test_forked_child_does_not_wait_for_calls_of_parent(root: Path) -> None:
    (root / "a.txt").write_text("ours\n")
    workspace = Workspace(str(root))
    client = workspace.session()
    with ThreadPoolExecutor() as pool, closed_gate():
        answer = pool.submit(ToolRouter(slow, client._session, client.log).call, "dawdle")
        Gate.reached.wait()
        child = os.fork()
        if child == 0:
            client._session.open_calls.wait_until_empty()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        Gate.opened.set()
        assert answer.result().output == "ours\n"
    workspace.close()
