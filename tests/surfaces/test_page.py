"""Questions and calls on the page: real processes, a real server, and a client that talks as the page does."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.page_client import Followed, PageClient, RunningPage, Working, running_page, writing

from handrail import Question, Verdict, Workspace
from handrail.kernel.page import page_link
from handrail.kernel.page.page_messages import as_text
from handrail.model.limits import Limits
from handrail.surfaces.page.page_hub import PageHub


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningPage, PageClient]]:
    with running_page(str(tmp_path_factory.mktemp("page"))) as started:
        entered = PageClient(started)
        yield started, entered
        entered.close()


@pytest.fixture
def client(shared: tuple[RunningPage, PageClient], monkeypatch: pytest.MonkeyPatch) -> PageClient:
    monkeypatch.setenv("HANDRAIL_STATE_DIR", shared[0].environment["HANDRAIL_STATE_DIR"])
    return shared[1]


@pytest.fixture
def events(client: PageClient) -> Iterator[Followed]:
    followed = client.follow()
    followed.next(lambda name, _: name == "state")
    yield followed
    followed.close()


def slowly(function: Callable[[str], Any]) -> Callable[[str], Any]:
    def slow(path: str) -> Any:
        threading.Event().wait(0.2)
        return function(path)

    return slow


def answer(client: PageClient, card: dict[str, Any], word: str, **more: Any) -> int:
    status: int = client.post("/api/answer", {"question": card["id"], "answer": word, **more}).status_code
    return status


def test_page_question_is_approved_with_its_finished_change(root: Path, client: PageClient, events: Followed) -> None:
    (root / "a.txt").write_text("old\n")
    with Workspace(root) as workspace:
        work = writing(workspace)
        card = events.question()
        rows = client.post("/api/diff", {"question": card["id"], "split": True, "start": 0, "count": 10}).json()["rows"]
        assert ["~", 1, "old", 1, "new"] in rows
        assert answer(client, card, "once") == 200
        assert work.result().success
        assert events.of("answered")["answered"] | {"at": 0} == {
            "place": "page",
            "allowed": True,
            "reason": "",
            "at": 0,
        }
        assert events.of("call-changed")["known"]["by"] == "user"
        assert workspace.history().entries(1)[0].entry.origin.by == "user"


def test_page_denial_gives_the_agent_its_reason(root: Path, client: PageClient, events: Followed) -> None:
    with Workspace(root) as workspace:
        work = writing(workspace)
        answer(client, events.question(), "no", reason="use b.txt")
        assert "the user said no: use b.txt" in work.result().text
    assert not (root / "a.txt").exists()


def test_page_edited_rule_is_checked_and_kept(root: Path, client: PageClient, events: Followed) -> None:
    with Workspace(root) as workspace:
        work = writing(workspace, "src/a.py")
        card = events.question()
        assert card["keeps"]["always"]["rule"] == "edit src/**"
        wrong = client.post("/api/rule", {"question": card["id"], "rule": "edit docs/**"}).json()
        right = client.post("/api/rule", {"question": card["id"], "rule": "edit src/*.py"}).json()
        assert (wrong["covers"], right["covers"]) == (False, True)
        answer(client, card, "always", rule="edit docs/**")
        assert "does not cover" in events.of("refused")["why"]
        answer(client, card, "always", rule="edit src/*.py", scope="project", hours=8)
        assert work.result().success
        assert workspace.call("file", "file.write", {"path": "src/b.py", "content": "x\n"}).success
        rules = (Path(os.environ["HANDRAIL_STATE_DIR"]) / "workspaces").glob("*/approvals.toml")
        assert any("edit src/*.py" in each.read_text() for each in rules)


def test_page_session_answer_covers_the_session(root: Path, client: PageClient, events: Followed) -> None:
    with Workspace(root) as workspace:
        work = writing(workspace, "src/a.py")
        answer(client, events.question(), "session")
        assert work.result().success
        assert workspace.call("file", "file.write", {"path": "docs/b.md", "content": "x\n"}).success


def test_page_shows_two_questions_and_answers_each(root: Path, client: PageClient, events: Followed) -> None:
    with Workspace(root) as one, Workspace(root) as two:
        first = writing(one, "a.txt")
        card = events.question()
        second = writing(two, "b.txt")
        other = events.question()
        answer(client, other, "no")
        answer(client, card, "once")
        assert (first.result().success, second.result().success) == (True, False)
        assert answer(client, card, "no") == 409


def test_page_ordinary_place_that_answers_first_wins(root: Path, client: PageClient, events: Followed) -> None:
    asked = threading.Event()

    def approve(_: Question) -> Verdict:
        asked.wait(60)
        return Verdict.allow()

    with Workspace(root, approver=approve) as workspace:
        work = writing(workspace)
        card = events.question()
        asked.set()
        assert work.result().success
        assert events.of("answered")["answered"]["place"] == "here"
        assert answer(client, card, "no") == 409


def test_page_answer_does_not_wait_for_a_blocked_function(root: Path, client: PageClient, events: Followed) -> None:
    blocked = threading.Event()
    with Workspace(root, approver=lambda _: blocked.wait(600)) as workspace:
        work = writing(workspace)
        answer(client, events.question(), "once")
        assert work.result().success
        blocked.set()


def test_page_answer_cancels_an_async_approver(root: Path, client: PageClient, events: Followed) -> None:
    ended = threading.Event()

    async def approve(_: Question) -> bool:
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()
        return False

    async def main(workspace: Workspace) -> bool:
        call = asyncio.create_task(workspace.acall("file", "file.write", {"path": "a.txt", "content": "x\n"}))
        card = await asyncio.to_thread(events.question)
        await asyncio.to_thread(answer, client, card, "once")
        return (await call).success

    with Workspace(root, approver=approve) as workspace:
        assert asyncio.run(main(workspace))
    assert ended.wait(60)


def test_page_approver_that_fails_refuses(root: Path, client: PageClient, events: Followed) -> None:
    def approve(_: Question) -> Verdict:
        raise RuntimeError("no window")

    with Workspace(root, approver=approve) as workspace:
        assert "asking failed with RuntimeError: no window" in writing(workspace).result().text
    assert events.of("answered")["answered"]["allowed"] is None
    assert client.page.process.poll() is None


def test_page_running_command_is_stopped(root: Path, client: PageClient, events: Followed) -> None:
    with Workspace(root, approve="auto") as workspace:
        work = Working(workspace, "copilot", "run_in_terminal", {"command": "sleep 600"})
        call = events.of("call")["call"]
        assert call["target"] == "sleep 600"
        assert client.post("/api/stop", {"call": call["id"]}).status_code == 200
        work.result()
        assert events.of("call-changed")["call"] == call["id"]
        assert client.post("/api/stop", {"call": call["id"]}).status_code == 409


def test_page_call_shows_parameters_and_answer(root: Path, client: PageClient, events: Followed) -> None:
    (root / "a.txt").write_text("zero\u200bwidth <script>alert(1)</script>\n")
    with Workspace(root) as workspace:
        result = workspace.call("file", "file.read", {"path": "a.txt"})
        call = events.of("call")["call"]
        events.of("call-changed")
    found = client.post("/api/call", {"call": call["id"]}).json()
    assert found["params"] == '{"path":"a.txt"}'
    assert "zero\\u200bwidth <script>alert(1)</script>" in found["answer"]
    assert "\u200b" in result.text


def test_page_killed_server_gives_the_question_back(root: Path) -> None:
    """Refused where no user can be asked, decided by the ordinary place where one can; the next server has it again."""
    asked, decided = threading.Event(), threading.Event()

    def approve(_: Question) -> Verdict:
        asked.set()
        decided.wait(60)
        return Verdict.allow()

    page = RunningPage()
    client = PageClient(page)
    followed = client.follow()
    with Workspace(root) as alone, Workspace(root, approver=approve) as with_place:
        refused, waiting = writing(alone, "a.txt"), writing(with_place, "b.txt")
        followed.question()
        followed.question()
        page.end(kill=True)
        assert "no approver can be asked" in refused.result().text
        assert asked.wait(60)
        with running_page() as again:
            threading.Event().wait(1.1)  # a process tries again after a second
            alone.call("file", "file.list", {"path": "."})
            second = PageClient(again)
            state = second.follow()
            cards = state.next(lambda name, _: name == "state")["questions"]
            assert [card["targets"] for card in cards] == [["b.txt"]]
            decided.set()
            assert waiting.result().success
            state.close()
            second.close()
    followed.close()
    client.close()


def test_page_shows_all_questions_that_come_while_a_process_connects(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("exists", "read_text"):
        monkeypatch.setattr(page_link, name, slowly(getattr(page_link, name)))
    page = RunningPage()
    client = PageClient(page)
    followed = client.follow()
    with ExitStack() as opened:
        workspaces = [opened.enter_context(Workspace(root)) for _ in range(8)]
        work = [writing(each, f"{n}.txt") for n, each in enumerate(workspaces)]
        shown = [followed.question()["targets"] for _ in work]
        assert sorted(shown) == [[f"{n}.txt"] for n in range(8)]
        page.end(kill=True)
        for each in work:
            each.result()
    followed.close()
    client.close()


def test_page_lost_connection_closes_no_handle_of_a_forked_child(root: Path) -> None:
    page = RunningPage()
    client = PageClient(page)
    followed = client.follow()
    with Workspace(root) as workspace:
        refused = writing(workspace)
        followed.question()
        page.end(kill=True)
        refused.result()
        handles = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]  # they take the numbers of the connection
        child = os.fork()
        if child == 0:
            os._exit(sum(not os.path.exists(f"/proc/self/fd/{each}") for each in handles))
        assert os.waitpid(child, 0)[1] == 0
        for each in handles:
            os.close(each)
    followed.close()
    client.close()


def test_page_browser_that_comes_back_gets_every_event_once(root: Path, client: PageClient, events: Followed) -> None:
    with Workspace(root) as workspace:
        workspace.call("file", "file.list", {"path": "."})
        first = events.of("call")["call"]["n"]
        events.close()
        for _ in range(20):
            workspace.call("file", "file.list", {"path": "."})
        again = client.follow(events.last)
        numbers = [again.of("call")["call"]["n"] for _ in range(20)]
        assert numbers == [*range(first + 1, first + 21)]
        again.close()
        stranger = client.follow("another-server.5")
        assert len(stranger.next(lambda name, _: name == "state")["calls"]) >= 21
        stranger.close()


def test_page_second_command_prints_address_of_the_same_server(client: PageClient) -> None:
    addresses = {client.page.another_address() for _ in range(2)}
    assert len(addresses) == 2
    assert {each.partition("/#")[0] for each in addresses} == {client.page.origin}


def test_page_not_running_costs_nothing_and_connects_nothing(workspace: Workspace) -> None:
    before = threading.active_count()
    assert workspace.call("file", "file.list", {"path": "."}).success
    assert threading.active_count() == before
    assert not (Path(os.environ["HANDRAIL_STATE_DIR"]) / "page").exists()


class SilentProcess:
    """Stands for the connection of a process that reads nothing."""

    name = "agent"

    def send(self, message: Any) -> None:
        """Drop a message."""


def test_page_keeps_what_a_job_prints_before_it_is_listed() -> None:
    hub = PageHub(Limits())
    take = hub.joined(SilentProcess())  # type: ignore[arg-type]
    take({"type": "session", "session": "s", "root": "/r", "client": "c", "time": 1.0})
    take({"type": "output", "of": "s/job 1", "data": as_text(b"first\r\n")})
    item = {"name": "job 1", "command": "c", "terminal": True, "running": True, "ending": "", "time": 1.0}
    take({"type": "held", "session": "s", "items": [item]})
    take({"type": "output", "of": "s/job 1", "data": as_text(b"second\r\n")})
    assert hub.outputs["p1:s/job 1"].shown()["data"] == as_text(b"first\r\nsecond\r\n")
    take({"type": "session-end", "session": "s"})
    assert not hub.outputs
