"""Tests who decides about a call and which rules are stored, through a workspace with a callback."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail import Question, Verdict, Workspace
from handrail.errors import RuleError
from handrail.kernel.host.use_counts import Tally
from handrail.model.approval import Keep
from handrail.policy.rules import Rule, short_rule
from handrail.policy.suggest import suggestion
from handrail.surfaces.rule_trial import try_call

YES = Verdict(True, "user")


class ScriptedUser:
    """Gives the answers in turn and keeps the questions."""

    def __init__(self, *answers: Verdict) -> None:
        self.answers, self.questions = list(answers), list[Question]()

    def __call__(self, question: Question) -> Verdict:
        self.questions.append(question)
        return self.answers.pop(0) if self.answers else Verdict(False, "user", reason="no more answers")


def create(workspace: Any, path: str) -> bool:
    return bool(workspace.call("copilot", "create_file", {"path": path, "content": "x"}).success)


def test_deny_rule_holds_under_every_policy(root: Path) -> None:
    for approve in ("auto", "host", "ask"):
        with Workspace(str(root), approve=approve, approver=ScriptedUser(YES, YES)) as workspace:
            workspace._rules.add(Rule("create_file", r'\{"path":"no.*', deny=True))
            result = workspace.call("copilot", "create_file", {"path": "no", "content": "x"})
            assert result.error is not None
            assert result.error.code == "approval_denied"
            said = r"""create_file was not approved: rule 1 of the user's rules forbids it: \{"path":"no.*"""
            assert result.error.message == said
            assert result.error.suggestion == "Do it another way; only the user can change the rule"
            assert create(workspace, approve)
    assert sorted(path.name for path in root.iterdir()) == ["ask", "auto", "host"]


def test_project_file_rules_can_only_deny(root: Path) -> None:
    (root / ".handrail.toml").write_text(
        '[[rule]]\ntool = "create_file"\npattern = ".*"\n[[rule]]\ntool = "*"\npattern = ".*migra.*"\ndeny = true\n'
    )
    asked_user = ScriptedUser(YES)
    with Workspace(str(root), approver=asked_user) as workspace:
        assert workspace.warnings == [".handrail.toml cannot approve anything: only its rules with deny = true count"]
        assert create(workspace, "a")
        assert len(asked_user.questions) == 1  # the first rule of the project approved nothing
        result = workspace.call("copilot", "create_file", {"path": "migrations/1.sql", "content": "x"})
        assert result.error is not None
        assert "rule 1 of the project's file forbids it" in result.error.message
        assert ".handrail.toml" not in result.text  # an agent whose client has a shell could edit that file
    assert len(asked_user.questions) == 1


@pytest.mark.parametrize("text", ["rule = 5", "rule = [5]", "[[rule]]\ntool = 'x'", "[[rule]]\npattern = 'x'"])
def test_project_file_malformed_rule_is_an_error(root: Path, text: str) -> None:
    (root / ".handrail.toml").write_text(text)
    with pytest.raises(RuleError, match=r"rule 1 in \.handrail\.toml"):
        Workspace(str(root))


def test_session_rule_holds_only_in_its_session(root: Path) -> None:
    always = Verdict(True, "user", always=True, keep=Keep("session", r'\{"path":"[ab]".*'))
    one, two = ScriptedUser(always), ScriptedUser()
    with Workspace(str(root)) as workspace:
        first, second = workspace.session(approver=one), workspace.session(approver=two)
        for name, session in (("a", first), ("b", first)):
            assert session.tools("copilot").call("create_file", {"path": name, "content": "x"}).success
        (root / "a").unlink()
        assert not second.tools("copilot").call("create_file", {"path": "a", "content": "x"}).success
        assert (len(one.questions), len(two.questions)) == (1, 1)
        first.close()
        second.close()


def test_project_rule_holds_in_root_user_rule_everywhere(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    answers = [Verdict(True, "user", always=True, keep=Keep(scope)) for scope in ("project", "user")]
    with Workspace(str(root), approver=ScriptedUser(*answers)) as workspace:
        assert create(workspace, "p")
        assert create(workspace, "u")
        assert create(workspace, "p") is False  # the file exists
    for name in ("p", "u"):
        (root / name).unlink()
    with Workspace(str(root)) as again:
        assert (create(again, "p"), create(again, "u")) == (True, True)
    with Workspace(str(other)) as elsewhere:
        assert (create(elsewhere, "p"), create(elsewhere, "u")) == (False, True)


def test_rule_made_in_sandbox_asks_again_in_weaker_sandbox(root: Path) -> None:
    def run(level: Any, *answers: Verdict) -> tuple[bool, int]:
        asked_user = ScriptedUser(*answers)
        with Workspace(str(root), sandbox=level, approver=asked_user) as workspace:
            done = workspace.call("copilot", "run_in_terminal", {"command": "echo a"})
        return done.success, len(asked_user.questions)

    always = Verdict(True, "user", always=True)
    assert run("network", always) == (True, 1)
    assert run("strict") == (True, 0)
    assert run("network") == (True, 0)
    assert run("off") == (False, 1)
    assert run("off", always) == (True, 1)
    assert run("off") == (True, 0)
    assert run("strict") == (True, 0)


def test_rule_expired_asks_again(root: Path) -> None:
    answers = [Verdict(True, "user", always=True, keep=Keep("session", ".*", hours)) for hours in (0, 1)]
    asked_user = ScriptedUser(*answers)
    with Workspace(str(root), approver=asked_user) as workspace:
        for name in ("a", "b", "c"):
            assert create(workspace, name)
    assert len(asked_user.questions) == 2


def test_rule_that_cannot_be_stored_approves_once_with_warning(root: Path) -> None:
    answers = [
        Verdict(True, "user", always=True),
        Verdict(True, "user", always=True, keep=Keep("user", "(")),
        Verdict(True, "user", always=True, keep=Keep("user", ".*", 1e300)),
    ]
    with Workspace(str(root), approver=ScriptedUser(*answers)) as workspace:
        warnings = [
            workspace.call("copilot", "create_file", {"path": path, "content": "x"}).warnings
            for path in (".git/hooks/x", "a", "b")
        ]
        assert workspace._rules.placed() == []
    begin = "approved this time only: cannot store the rule: "
    assert warnings == [
        [f"{begin}this call needs approval every time: the call reaches into .git, which is guarded"],
        [f"{begin}the rule: the pattern is not a valid regular expression: missing ) at position 1"],
        [f"{begin}1e+300 hours from now is too far in the future"],
    ]


def test_suggestion_for_patch_covers_changed_files(root: Path) -> None:
    def decided(*names: str) -> tuple[str, bool | None]:
        body = "".join(f"*** Add File: {name}\n+x\n" for name in names)
        patch = {"patch": f"*** Begin Patch\n{body}*** End Patch\n"}
        question, _ = try_call(workspace, "codex", "apply_patch_json", patch)
        assert question is not None
        return suggestion(question, workspace.settings.limits), workspace._rules.decide(question).allowed

    with Workspace(str(root)) as workspace:
        rule, _ = decided("a/b.md", "c.py", "a/d.md")
        assert rule == "edit a/** c.py"
        workspace._rules.session.rules = [short_rule(rule)]
        calls = [("a/b.md", "c.py", "a/d.md"), ("a/x/y",), ("b.md",), ("c.py", "d/c.py")]
        assert [decided(*names)[1] for names in calls] == [True, True, None, None]
        assert decided("a/1", "b/1", "c/1", "d/1")[0] == "edit **"


def test_use_counts_are_shared_and_survive_damage(tmp_path: Path) -> None:
    path = tmp_path / "state" / "counts.json"
    one, two = Tally(str(path)), Tally(str(path))
    one.count(["a"])
    two.count(["a", "b"])
    assert {key: count.times for key, count in one.read().items()} == {"a": 2, "b": 1}
    assert list(json.loads(path.read_text())) == ["a", "b"]
    path.write_text("{")
    assert one.read() == {}
    one.count([])
    assert path.read_text() == "{"
    one.count(["c"])
    assert one.read()["c"].times == 1
