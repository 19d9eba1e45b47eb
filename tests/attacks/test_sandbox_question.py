"""Checks that a question about a command names the sandbox level at which the command runs, and that rules obey it."""

import os
import select
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ElicitResult
from support.mcp_client import ERAS, call, in_memory
from support.sandboxes import has_bubblewrap

from handrail import Question, Workspace
from handrail.kernel.sandbox import find_bwrap, probe
from handrail.kernel.sandbox.helpers.landlock_exec import abi
from handrail.policy.rule_match import RuleMatcher
from handrail.policy.rules import LEVELS, Rule
from handrail.surfaces.approval_text import happening, whole

COMMAND: tuple[str, str, dict[str, Any]] = ("codex", "shell", {"command": "true"})
CANDIDATES = {"missing": [], "broken": ["/bin/false"]}
REDUCED = {
    "strict": ("reduced", "reduced (Landlock alone), without network"),
    "network": ("reduced-network", "reduced (Landlock alone), with network"),
}


class Approver:
    """Keeps the questions and gives one answer to all."""

    def __init__(self, *, allow: bool = False) -> None:
        self.questions, self._allow = list[Question](), allow

    def __call__(self, question: Question) -> bool:
        self.questions.append(question)
        return self._allow

    @property
    def shown(self) -> list[str]:
        return [line for each in self.questions for line in happening(each, whole()) if line.startswith("Sandbox: ")]


@pytest.fixture
def _works(tmp_path: Path) -> None:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")


@pytest.mark.parametrize("level", REDUCED)
@pytest.mark.parametrize("bubblewrap", CANDIDATES)
def test_question_names_reduced_level_without_bubblewrap(
    root: Path, monkeypatch: pytest.MonkeyPatch, level: Any, bubblewrap: str
) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: CANDIDATES[bubblewrap])
    approver = Approver()
    with Workspace(str(root), sandbox=level, allow_reduced=True, approver=approver) as workspace:
        workspace.call(*COMMAND)
        workspace.call(*COMMAND)
    name, shown = REDUCED[level]
    assert [each.sandbox for each in approver.questions] == [name, name]
    assert approver.shown == [f"Sandbox: {shown}"] * 2


@pytest.mark.parametrize("era", ERAS)
def test_mcp_question_names_reduced_level_without_bubblewrap(
    root: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    messages: list[str] = []

    async def answer(_context: Any, params: Any) -> ElicitResult:
        messages.append(params.message)
        return ElicitResult(action="accept", content={"decision": "no"})

    with Workspace(str(root), approve="ask", allow_reduced=True) as workspace:
        call(in_memory(workspace, dialect="codex"), "shell", {"command": "true"}, era, elicitation_callback=answer)
    (message,) = messages
    assert "\nSandbox: reduced (Landlock alone), without network\n" in message


def test_question_without_allow_reduced_names_level_of_settings(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    approver = Approver(allow=True)
    with Workspace(str(root), allow_reduced=False, approver=approver) as workspace:
        result = workspace.call(*COMMAND)
    assert approver.shown == ["Sandbox: strict, without network"]
    assert result.error is not None
    assert result.error.code == "sandbox_unavailable"


@pytest.mark.usefixtures("_works")
def test_command_approved_for_strict_never_runs_reduced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the question and the command, bubblewrap ceases to work on this machine."""
    real = find_bwrap.candidates(str(root))

    def approve(question: Question) -> bool:
        asked.append(question.sandbox)
        monkeypatch.setattr("handrail.kernel.sandbox.launch.strict", _fail)
        return True

    def _fail(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    asked: list[str] = []
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: real)
    with Workspace(str(root), allow_reduced=True, approver=approve) as workspace:
        result = workspace.call("codex", "shell", {"command": "touch made"})
    assert asked == ["strict"]
    assert result.error is not None
    assert result.error.code == "sandbox_unavailable"
    assert not (root / "made").exists()


@pytest.mark.usefixtures("_works")
def test_question_tries_bubblewrap_once_in_session(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, tries, approver = probe.works, list[str](), Approver()

    def counted(view: Any, bwrap: str) -> bool:
        tries.append(bwrap)
        return real(view, bwrap)

    monkeypatch.setattr(probe, "works", counted)
    with Workspace(str(root), allow_reduced=True, approver=approver) as workspace:
        workspace.call(*COMMAND)
        workspace.call(*COMMAND)
        assert len(tries) == 1
    with Workspace(str(root), allow_reduced=False, approver=approver) as workspace:
        workspace.call(*COMMAND)
    assert len(tries) == 1
    assert approver.shown == ["Sandbox: strict, without network"] * 3


@pytest.mark.usefixtures("_works")
def test_trial_that_takes_too_long_leaves_no_process(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, slow = tmp_path / "started", tmp_path / "bwrap"
    slow.write_text(f'#!/bin/sh\nsleep 1000 &\necho $! >> "{started}"\nwait\n')
    slow.chmod(0o755)
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [str(slow)])
    with Workspace(str(root), allow_reduced=True, approve="auto", limits={"sandbox_start_seconds": 2}) as workspace:
        workspace.call(*COMMAND)
    children = [int(pid) for pid in started.read_text().split()]
    assert children
    assert all(map(_ends, children))


def _ends(pid: int) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 10)[0])
    finally:
        os.close(handle)


@pytest.mark.parametrize("rule_level", ["strict", "network"])
def test_rule_of_stricter_level_does_not_approve_reduced_command(
    root: Path, monkeypatch: pytest.MonkeyPatch, rule_level: str
) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    approver = Approver()
    with Workspace(str(root), allow_reduced=True, approver=approver) as workspace:
        workspace._rules.add(Rule("shell", argv=("true",), sandbox=rule_level))
        assert not workspace.call(*COMMAND).success
    assert len(approver.questions) == 1


def test_rule_approves_only_levels_that_confine_at_least_as_much() -> None:
    limits: Any = None
    found = {
        weakest: [
            level
            for level in LEVELS
            if not RuleMatcher(Question("codex", "shell", {}, 0, sandbox=level), limits).why_not_in_force(  # type: ignore[arg-type]
                Rule("shell", ".*", sandbox=weakest)
            )
        ]
        for weakest in LEVELS
    }
    assert found == {
        "off": ["off", "reduced-network", "reduced", "network", "hosts", "strict"],
        "reduced-network": ["reduced-network", "reduced", "network", "hosts", "strict"],
        "reduced": ["reduced", "strict"],
        "network": ["network", "hosts", "strict"],
        "hosts": ["hosts", "strict"],
        "strict": ["strict"],
    }


@pytest.mark.skipif(abi() < 3, reason="this system has no Landlock")
def test_question_about_typed_text_names_level_of_terminal(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    approver = Approver(allow=True)
    with Workspace(str(root), allow_reduced=True, approver=approver) as workspace:
        started: Any = workspace.call("codex", "exec_command", {"session_id": "t", "cmd": "cat"})
        assert started.success, started
        assert workspace.call("codex", "write_stdin", {"session_id": "t", "chars": "x\n"}).success
    assert [each.sandbox for each in approver.questions] == ["reduced", "reduced"]
