"""Tests that a user can see a whole change over MCP before the answer."""

from pathlib import Path
from typing import Any

import pytest
from mcp.types import ElicitResult
from support.mcp_client import ERAS, Serve, call

from handrail import Workspace

LINES = [f"{number}\n" for number in range(1000)]
WRITE = {"path": "a.txt", "content": "".join(LINES)}
WHOLE = "".join(f"+{line}" for line in LINES)


class ScriptedUser:
    """Gives the answers in turn; keeps the messages and the offered answers."""

    def __init__(self, *says: str) -> None:
        self.says, self.shown, self.offered = [*says], list[str](), list[list[str]]()

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.shown.append(params.message)
        self.offered.append(params.requested_schema["properties"]["decision"]["enum"])
        return ElicitResult(action="accept", content={"decision": self.says.pop(0)})


@pytest.fixture
def asking(root: Path) -> Any:
    with Workspace(str(root), approve="ask") as workspace:
        yield workspace


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("decision", "success"), [("once", True), ("no", False)])
def test_mcp_show_all_shows_whole_change_before_answer(
    asking: Workspace, root: Path, era: str, decision: str, success: bool, serve: Serve
) -> None:
    asked_user = ScriptedUser("show all", decision)
    answer = call(serve(asking), "file.write", WRITE, era, elicitation_callback=asked_user)
    assert "lines not shown" in asked_user.shown[0]
    assert WHOLE in asked_user.shown[1]
    assert asked_user.offered == [["once", "session", "always", "no", "show all"], ["once", "session", "always", "no"]]
    assert (answer["success"], (root / "a.txt").exists()) == (success, success)


@pytest.mark.parametrize("era", ERAS)
def test_mcp_show_all_is_not_approval(asking: Workspace, root: Path, era: str, serve: Serve) -> None:
    """Answer "show all" repeatedly: the server asks again or denies, and writes nothing."""
    asked_user = ScriptedUser("show all", "show all", "no")
    answer = call(serve(asking), "file.write", WRITE, era, elicitation_callback=asked_user)
    assert answer["error"]["code"] == "approval_denied"
    assert not (root / "a.txt").exists()


def test_mcp_show_all_after_file_changed_asks_again(asking: Workspace, root: Path, serve: Serve) -> None:
    asked_user = ScriptedUser("show all", "no")

    async def look(context: Any, params: Any) -> ElicitResult:
        (root / "a.txt").write_text("precious\n")
        return await asked_user(context, params)

    call(serve(asking), "file.write", WRITE, ERAS[1], elicitation_callback=look)
    assert "-precious\n" in asked_user.shown[1]
    assert asked_user.offered[1] == ["once", "session", "always", "no", "show all"]
    assert (root / "a.txt").read_text() == "precious\n"


@pytest.mark.parametrize("era", ERAS)
def test_mcp_question_fetch_url_is_never_shortened(root: Path, era: str, serve: Serve) -> None:
    asked_user, url = ScriptedUser("no"), f"https://example.com/{'a' * 5000}?the=end"
    with Workspace(str(root), approve="ask") as workspace:
        server = serve(workspace, dialect="copilot")
        call(server, "fetch_webpage", {"url": url}, era, elicitation_callback=asked_user)
    assert f"  url: {url}\n" in asked_user.shown[0]
    assert asked_user.offered == [["once", "session", "always", "no"]]


@pytest.mark.parametrize("era", ERAS)
def test_mcp_question_escapes_blank_and_invisible_characters(asking: Workspace, era: str, serve: Serve) -> None:
    asked_user = ScriptedUser("no")
    odd = {"path": "a\xa0b\u2800.txt", "content": "x\u3000y\u200dz\U000e0041\n"}
    call(serve(asking), "file.write", odd, era, elicitation_callback=asked_user)
    assert asked_user.shown[0].isascii()
    assert "+x\\u3000y\\u200dz\\U000e0041\n" in asked_user.shown[0]
    assert "Files affected: a\\xa0b\\u2800.txt\n" in asked_user.shown[0]
