"""Rules, doctor and history on the page, through requests as the page sends them."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.page_client import PageClient, running_page

from handrail import Workspace
from handrail.policy.rules import Rule, short_rule
from handrail.workspace import internals


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageClient]:
    with running_page(str(tmp_path_factory.mktemp("page"))) as started:
        entered = PageClient(started)
        yield entered
        entered.close()


@pytest.fixture
def client(shared: PageClient, monkeypatch: pytest.MonkeyPatch) -> PageClient:
    monkeypatch.setenv("HANDRAIL_STATE_DIR", shared.page.environment["HANDRAIL_STATE_DIR"])
    return shared


@pytest.fixture
def known(root: Path, client: PageClient) -> Iterator[Workspace]:
    """Return a workspace that the page knows, because a call was made there."""
    events = client.follow()
    events.next(lambda name, _: name == "state")
    with Workspace(root, approve="auto") as workspace:
        assert workspace.call("file", "file.list", {"path": "."}).success
        events.of("call-changed")
        yield workspace
    events.close()


def ask(client: PageClient, path: str, workspace: Workspace, **more: Any) -> Any:
    answer = client.post(path, {"workspace": workspace.root, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def rules_of(client: PageClient, workspace: Workspace) -> dict[str, Any]:
    return {each["rule"]: each for each in ask(client, "/api/rules", workspace)["rules"]}


def test_page_lists_rules_in_plain_sentences(root: Path, client: PageClient, known: Workspace) -> None:
    rules = internals(known).rules
    rules.add(short_rule("edit docs/**"), "project")
    rules.add(Rule("*", calls="rm *", deny=True), "project")
    listed = rules_of(client, known)
    assert listed["edit docs/**"]["sentence"].startswith("In this project, allows the agent to create, change")
    assert (listed["rm *"]["scope"], listed["rm *"]["deny"]) == ("project", True)


def test_page_rule_is_disabled_enabled_and_removed(root: Path, client: PageClient, known: Workspace) -> None:
    internals(known).rules.add(short_rule("edit docs/**"), "project")
    for act, enabled in (("disable", False), ("enable", True)):
        rule = rules_of(client, known)["edit docs/**"]
        ask(client, "/api/rule-change", known, same=rule["same"], do=act)
        assert internals(known).rules.project.now()[0][1].enabled is enabled
    rule = rules_of(client, known)["edit docs/**"]
    assert ask(client, "/api/rule-change", known, same=rule["same"], do="remove") == {"rules": []}
    assert internals(known).rules.project.now() == []


def test_page_rule_that_changed_since_is_not_removed(root: Path, client: PageClient, known: Workspace) -> None:
    """Another rule has taken the number of the one that the user saw."""
    rules = internals(known).rules
    rules.add(short_rule("edit docs/**"), "project")
    seen = rules_of(client, known)["edit docs/**"]["same"]
    rules.add(Rule("*", calls="rm *", deny=True), "project")
    rules.project.remove(1)
    answer = client.post("/api/rule-change", {"workspace": known.root, "same": seen, "do": "remove"})
    assert answer.status_code == 409
    assert [rule.calls for _, rule in rules.project.now()] == ["rm *"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("rm -r build", "Forbidden by project rule 1: rm *"),
        ("git status", "No rule decides this call: it would need approval"),
        ('file.read {"path": "a.txt"}', "would fail before any question"),
        ('file.write {"path": "docs/a.txt", "content": ""}', "Approved by project rule 2: edit docs/**"),
        ("edit docs/a.txt", "Approved by project rule 2: edit docs/**"),
    ],
)
def test_page_call_is_tested_and_changes_nothing(
    root: Path, client: PageClient, known: Workspace, call: str, says: str
) -> None:
    internals(known).rules.add(Rule("*", calls="rm *", deny=True), "project")
    internals(known).rules.add(short_rule("edit docs/**"), "project")
    assert says in ask(client, "/api/rule-test", known, call=call)["says"]
    assert not (root / "docs").exists()


@pytest.mark.parametrize("call", ["edit 'docs", "edit docs/*", "file.read {", "", " ", None, 7, "x" * 10_001])
def test_page_call_that_cannot_be_tested_says_why(client: PageClient, known: Workspace, call: object) -> None:
    answer = client.post("/api/rule-test", {"workspace": known.root, "call": call})
    assert answer.status_code in (400, 409)
    assert answer.text


@pytest.mark.sandbox
def test_page_doctor_tries_the_sandbox_of_the_workspace(client: PageClient, known: Workspace) -> None:
    findings = ask(client, "/api/doctor", known)["findings"]
    assert {"system", "ripgrep", "sandbox", "undo"} <= {name for name, _, _ in findings}


@pytest.mark.parametrize(
    "path", ["rules", "rule-change", "rule-test", "doctor", "history", "entry", "plan", "undo", "mark"]
)
def test_page_opens_no_workspace_that_no_process_reported(client: PageClient, tmp_path: Path, path: str) -> None:
    assert client.post(f"/api/{path}", {"workspace": str(tmp_path), "kind": "undo"}).status_code == 404


@pytest.mark.parametrize("path", ["rules", "doctor", "history", "entry", "plan", "undo", "mark"])
def test_page_workspace_that_is_gone_is_an_answer(root: Path, client: PageClient, known: Workspace, path: str) -> None:
    known.close()
    shutil.rmtree(root)
    answer = client.post(f"/api/{path}", {"workspace": known.root, "kind": "undo", "n": 1, "name": "x"})
    assert (answer.status_code, root.name in answer.text) == (409, True)


def test_page_fast_agent_loses_no_call(client: PageClient, known: Workspace) -> None:
    """Also while a browser leaves: the server must not wait for what it writes about it."""
    left = client.follow()
    left.next()
    left.close()
    for _ in range(1500):
        known.call("file", "file.list", {"path": "."})
    events = client.follow()
    count = len(events.next(lambda name, _: name == "state")["calls"])
    while count < 1501:
        events.of("call")
        count += 1
    events.close()
