"""Attacks hooks: programs with the user's rights must never run what an agent wrote, nor loosen any rule."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support.command_line import ARGV, handrail
from support.hooks import HookWriter, answers, own, table
from support.pseudo_terminal import Terminal, unwrapped

from handrail import Question, Verdict, Workspace

WRITE = {"path": "b.txt", "content": "x"}


def project(root: Path, command: str) -> None:
    (root / ".handrail.toml").write_text(f'[[hooks.PreToolUse]]\nhooks = [{{ command = "{command}" }}]\n')


def reads(workspace: Workspace, root: Path) -> bool:
    (root / "a.txt").write_text("one\n")
    return workspace.tools("file").call("file.read", {"path": "a.txt"}).success


# ── whose hooks run ──


def test_hooks_of_the_project_do_not_run(root: Path, hook: HookWriter, tmp_path: Path) -> None:
    project(root, hook(f"touch {tmp_path}/ran; exit 2"))
    with Workspace(root) as workspace:
        assert reads(workspace, root)
        assert any("hooks trust" in line for line in workspace.warnings)
    assert not (tmp_path / "ran").exists()


def trust(root: Path, answer: str) -> str:
    with Terminal(*ARGV, "hooks", "trust", "--root", str(root)) as terminal:
        shown = terminal.until("Trust them?")
        terminal.send(f"{answer}\n")
        terminal.finish()
    return unwrapped(shown)


def test_trusted_hooks_run_until_the_file_changes(root: Path, hook: HookWriter) -> None:
    command = hook("exit 2")
    project(root, command)
    assert command in trust(root, "y")
    with Workspace(root) as workspace:
        assert not reads(workspace, root)
    with (root / ".handrail.toml").open("a") as file:
        file.write("# changed\n")
    with Workspace(root) as workspace:
        assert reads(workspace, root)


def test_hooks_that_the_user_does_not_trust_do_not_run(root: Path, hook: HookWriter) -> None:
    project(root, hook("exit 2"))
    trust(root, "n")
    with Workspace(root) as workspace:
        assert reads(workspace, root)


def test_untrusted_again_hooks_do_not_run(root: Path, hook: HookWriter) -> None:
    project(root, hook("exit 2"))
    trust(root, "y")
    assert handrail("hooks", "untrust", "--root", str(root)).returncode == 0
    with Workspace(root) as workspace:
        assert reads(workspace, root)


def test_trust_without_a_terminal_is_refused(root: Path, hook: HookWriter) -> None:
    project(root, hook("exit 2"))
    answered = handrail("hooks", "trust", "--root", str(root), stdin="y\n")
    assert answered.returncode == 2
    assert "in a terminal" in answered.stderr
    with Workspace(root) as workspace:
        assert reads(workspace, root)


def test_terminal_sees_no_control_characters_of_a_project(root: Path) -> None:
    (root / ".handrail.toml").write_text('[[hooks.PreToolUse]]\nhooks = [{ command = "true \\u001b[2K\\u001b[1A" }]\n')
    shown = trust(root, "n")
    assert "\x1b[2K" not in shown
    assert "true \\x1b[2K\\x1b[1A" in shown


def test_trust_shows_the_whole_of_a_long_hook(root: Path) -> None:
    command = f"true {'a' * 5000} ; rm x"
    (root / ".handrail.toml").write_text(f'[[hooks.PreToolUse]]\nhooks = [{{ command = "{command}" }}]\n')
    assert command in trust(root, "n")


# ── which programs run ──


def plant(path: Path, ran: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {ran}\n")
    path.chmod(0o755)
    return path


PLANTED = {
    "by its path": "{root}/tool",
    "by a relative path": "./tool",
    "by a variable": '"$CLAUDE_PROJECT_DIR"/tool',
    "by a variable in braces": "${{CLAUDE_PROJECT_DIR}}/tool",
    "by a link from outside": "{outside}/link",
    "by a link inside": "{root}/alias",
    "in an interpreter": "sh tool",
    "in an interpreter by its path": "/bin/sh {root}/tool",
    "behind an option": "/bin/sh -e tool",
    "after another command": "true; ./tool",
    "in a pipe": "cat | ./tool",
    "in a substitution": "echo $(./tool)",
    "with env": "env ./tool",
    "with env and a path": "env PATH=. tool",
    "with xargs": "xargs ./tool",
    "in a shell in a shell": "sh -c './tool'",
    "sourced": ". ./tool",
    "in a redirection": "sh < tool",
    "by a name that the text does not show": "$TOOL",
    "by an evaluated text": 'eval "$TOOL"',
    "as an argument that the model chooses": "jq -r .tool_input.path | xargs sh",
    "as code that the model chooses": 'sh -c "$(jq -r .tool_input.path)"',
    "as a file that the model chooses": 'read f; . "$f"',
    "as a script of another program": "sed -f tool",
    "in a preloaded module": "node -r ./tool /dev/null",
    "by a trap": "trap ./tool EXIT",
    "by exec": "exec ./tool",
    "by command": "command ./tool",
    "by timeout": "timeout 5 ./tool",
    "by find": "find . -name tool -exec ./tool ;",
    "by another PATH": "PATH=$PWD:$PATH; tool",
    "by a preloaded library": "LD_PRELOAD=./tool true",
    "by an alias": "shopt -s expand_aliases; alias true=./tool; true",
    "by a function": "f() {{ ./tool; }}; f",
    "after a change of the directory": "cd /; cd - ; ./tool",
    "on the input of a shell": "cat tool | sh",
    "in a heredoc": "sh <<END\n./tool\nEND",
    "in awk": "awk 'BEGIN {{ system(\"./tool\") }}'",
    "in perl": "perl -e 'system(\"./tool\")'",
    "by a name of PATH": "tool",
    "with make": "make all",
    "with npx": "npx tool",
    "in a git directory": "{root}/.git/tool",
    "in a writable directory": "{writable}/tool",
}


@pytest.mark.parametrize("how", PLANTED)
def test_program_that_an_agent_wrote_does_not_run(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    ran, outside, writable = tmp_path / "ran", tmp_path / "outside", tmp_path / "writable"
    for place in (root / "tool", root / ".git" / "tool", writable / "tool"):
        plant(place, ran)
    outside.mkdir()
    (outside / "link").symlink_to(root / "tool")
    (root / "alias").symlink_to(outside / "link")
    (root / "Makefile").write_text(f"all:\n\ttouch {ran}\n")
    monkeypatch.setenv("PATH", f"{root}:.::{os.environ['PATH']}")
    monkeypatch.setenv("TOOL", str(root / "tool"))
    command = PLANTED[how].format(root=root, outside=outside, writable=writable)
    hooks = table("PreToolUse", command)
    with Workspace(root, approve="auto", hooks=hooks, writable=[str(writable)]) as workspace:
        assert not reads(workspace, root)
    assert not ran.exists()


def test_module_that_an_agent_wrote_is_not_imported(root: Path, tmp_path: Path) -> None:
    (root / "json").mkdir()
    (root / "json" / "tool.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (root / "tool.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    hooks = table("PreToolUse", f"{sys.executable} -m json.tool")
    with Workspace(root, hooks=hooks) as workspace:
        assert reads(workspace, root)
    assert not (tmp_path / "ran").exists()


def test_model_does_not_read_which_file_a_hook_runs(root: Path) -> None:
    told: list[str] = []
    with Workspace(root, tell=told.append, hooks=table("PreToolUse", "sh tool")) as workspace:
        result = workspace.tools("file").call("file.read", {"path": "a.txt"})
    assert "tool" not in result.text.replace("a tool", "")
    assert any("an agent can write the file tool" in line for line in told)


def test_link_that_an_agent_made_is_not_written_through(root: Path, tmp_path: Path) -> None:
    victim = tmp_path / "profile"
    (root / "hook.log").symlink_to(victim)
    with Workspace(root, hooks=table("PreToolUse", "cat >> hook.log")) as workspace:
        assert not reads(workspace, root)
    assert not victim.exists()


def test_program_below_a_guarded_name_runs_in_a_strict_sandbox(root: Path, tmp_path: Path) -> None:
    plant(root / ".claude" / "hooks" / "tool", tmp_path / "ran")
    hooks = table("PreToolUse", '"$CLAUDE_PROJECT_DIR"/.claude/hooks/tool')
    with Workspace(root, hooks=hooks, allow_reduced=False) as workspace:
        assert reads(workspace, root)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("settings", [{"allow_reduced": True}, {"sandbox": "off"}, {"guarded": ["other"]}])
def test_program_below_a_name_that_is_not_guarded_is_refused(
    root: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    plant(root / ".claude" / "hooks" / "tool", tmp_path / "ran")
    hooks = table("PreToolUse", '"$CLAUDE_PROJECT_DIR"/.claude/hooks/tool')
    with Workspace(root, hooks=hooks, **({"allow_reduced": False} | settings)) as workspace:
        assert not reads(workspace, root)
    assert not (tmp_path / "ran").exists()


def test_guarded_name_that_is_a_link_is_refused(root: Path, tmp_path: Path) -> None:
    plant(root / "mine" / "hooks" / "tool", tmp_path / "ran")
    (root / ".claude").symlink_to("mine")
    hooks = table("PreToolUse", '"$CLAUDE_PROJECT_DIR"/.claude/hooks/tool')
    with Workspace(root, hooks=hooks, allow_reduced=False) as workspace:
        assert not reads(workspace, root)
    assert not (tmp_path / "ran").exists()


def test_environment_has_no_variable_of_handrail(
    root: Path, hook: HookWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "start").write_text(f"touch {tmp_path}/ran\n")
    monkeypatch.setenv("BASH_ENV", str(root / "start"))
    monkeypatch.setenv("HANDRAIL_APPROVE", "auto")
    monkeypatch.setenv("MINE", "kept")
    with Workspace(root, hooks=table("PreToolUse", hook(f"env > {tmp_path}/env"))) as workspace:
        assert reads(workspace, root)
    seen = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    assert [name for name in seen if name.startswith("HANDRAIL_")] == []
    assert (seen["MINE"], seen["CLAUDE_PROJECT_DIR"]) == ("kept", workspace.root)
    assert not (tmp_path / "ran").exists()


# ── bounds ──


@pytest.mark.parametrize("stream", ["yes", "yes >&2", "head -c 5000000 /dev/zero"])
def test_output_bomb_is_a_broken_hook(root: Path, hook: HookWriter, stream: str) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"command": hook(stream), "timeout": 2}]}]}
    with Workspace(root, hooks=hooks) as workspace:
        result = workspace.tools("file").call("file.read", {"path": "a.txt"})
    assert result.error is not None
    assert "must judge it failed" in result.error.message
    assert len(result.error.message) < 1000


@pytest.mark.parametrize("start", ["sleep 6000 &", "setsid sleep 6000 &", "(nohup setsid sleep 6000 &)"])
@pytest.mark.parametrize("end", ["sleep 6000", "echo '{}'"])
def test_children_of_a_hook_end_with_it(root: Path, hook: HookWriter, tmp_path: Path, start: str, end: str) -> None:
    pids = tmp_path / "pids"
    start = start.replace("sleep 6000", f"bash -c 'echo $$ >> {pids}; exec sleep 6000 >/dev/null 2>&1'")
    command = hook(f"{start}\nuntil [ -s {pids} ]; do sleep 0.01; done\n{end}")
    for seconds in (1, 4, 16, 64, 256):  # on a busy machine the child may not run before the time is up
        hooks = {"PreToolUse": [{"hooks": [{"command": command, "timeout": seconds}]}]}
        with Workspace(root, hooks=hooks) as workspace:
            went_on = reads(workspace, root)
            if pids.exists() and went_on == ("echo" in end):
                break
    assert went_on == ("echo" in end)
    for pid in pids.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


# ── what a hook cannot loosen ──


@pytest.mark.parametrize("path", ["../b.txt", "/etc/passwd-x", "a/../../b.txt", "link/b.txt", ".env"])
def test_changed_input_cannot_leave_the_root(root: Path, hook: HookWriter, tmp_path: Path, path: str) -> None:
    (root / "link").symlink_to(tmp_path)
    command = hook(own(permissionDecision="allow", updatedInput={"path": path, "content": "x"}))
    with Workspace(root, approve="auto", protect=["@secrets"], hooks=table("PreToolUse", command)) as workspace:
        assert not workspace.tools("file").call("file.write", WRITE).success
    assert not list(tmp_path.glob("b.txt"))
    assert not (root / ".env").exists()


ALLOWS = {
    "PreToolUse": own(permissionDecision="allow"),
    "PermissionRequest": own(decision={"behavior": "allow"}),
}


@pytest.mark.parametrize("event", ALLOWS)
def test_allow_does_not_approve_a_guarded_name(root: Path, hook: HookWriter, event: str) -> None:
    asked: list[Question] = []

    def approver(question: Question) -> Verdict:
        asked.append(question)
        return Verdict.deny("no")

    hooks = table(event, hook(ALLOWS[event]))
    with Workspace(root, approver=approver, hooks=hooks) as workspace:
        call = {"path": ".vscode/settings.json", "content": "{}"}
        assert not workspace.tools("file").call("file.write", call).success
    assert [question.guarded for question in asked] == [".vscode"]


@pytest.mark.parametrize("event", ALLOWS)
def test_allow_does_not_overrule_a_deny_rule(root: Path, hook: HookWriter, event: str) -> None:
    (root / ".handrail.toml").write_text('[[rule]]\ntool = "file.write"\npattern = ".*b.txt.*"\ndeny = true\n')
    with Workspace(root, hooks=table(event, hook(ALLOWS[event]))) as workspace:
        result = workspace.tools("file").call("file.write", WRITE)
    assert result.error is not None
    assert "forbids it" in result.error.message


@pytest.mark.parametrize("event", ALLOWS)
@pytest.mark.parametrize("settings", [{"approve": "never"}, {"read_only": True}, {"protect": ["b.txt"]}])
def test_allow_does_not_loosen_settings(root: Path, hook: HookWriter, event: str, settings: dict[str, Any]) -> None:
    with Workspace(root, hooks=table(event, hook(ALLOWS[event])), **settings) as workspace:
        assert not workspace.tools("file").call("file.write", WRITE).success
    assert not (root / "b.txt").exists()


@pytest.mark.sandbox
@pytest.mark.parametrize("event", ALLOWS)
def test_allow_grants_no_rights_beyond_the_sandbox(root: Path, hook: HookWriter, event: str) -> None:
    asked: list[Question] = []

    def approver(question: Question) -> Verdict:
        asked.append(question)
        return Verdict.deny("no")

    more = {
        "sandbox_permissions": "with_additional_permissions",
        "additional_permissions": {"network": {"enabled": True}},
    }
    with Workspace(root, approver=approver, hooks=table(event, hook(ALLOWS[event]))) as workspace:
        result = workspace.tools("codex-2026").call("exec_command", {"cmd": "true", "justification": "x", **more})
    assert not result.success
    assert [question.rights.words for question in asked] == [("network *",)]


def test_deny_of_one_hook_wins_over_allow_of_another(root: Path, hook: HookWriter) -> None:
    commands = [{"command": hook(ALLOWS["PreToolUse"], "one")}, {"command": hook("exit 2", "two")}]
    with Workspace(root, approve="auto", hooks={"PreToolUse": [{"hooks": commands}]}) as workspace:
        assert not workspace.tools("file").call("file.write", WRITE).success


def test_permission_hook_cannot_answer_a_hook_that_asks_the_user(root: Path, hook: HookWriter) -> None:
    hooks = table("PreToolUse", hook(own(permissionDecision="ask"), "one"))
    hooks |= table("PermissionRequest", hook(ALLOWS["PermissionRequest"], "two"))
    with Workspace(root, approve="auto", approver=lambda _: False, hooks=hooks) as workspace:
        assert not workspace.tools("file").call("file.write", WRITE).success


def test_reason_has_no_control_characters(root: Path, hook: HookWriter) -> None:
    told: list[str] = []
    reason = "no\x1b]0;title\x07\u202e"
    command = hook(answers({"systemMessage": reason, "hookSpecificOutput": {"permissionDecision": "deny"}}), "h\x1b[1m")
    quoted = "'" + command + "'"
    with Workspace(root, tell=told.append, hooks=table("PreToolUse", quoted)) as workspace:
        result = workspace.tools("file").call("file.read", {"path": "a.txt"})
    assert not any(char in "".join([*told, result.text]) for char in "\x1b\x07\u202e")
    assert any("no\\x1b]0;title\\x07\\u202e" in line for line in told)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-program-x", "is not found in the directories of PATH"),
        ("/no/such/program", "is not found, or not a file"),
        ("{old} -c 1", "may import modules of the workspace"),
    ],
)
def test_user_reads_why_a_hook_does_not_run(root: Path, tmp_path: Path, command: str, why: str) -> None:
    old = plant(tmp_path / "python3.9", tmp_path / "ran")
    told: list[str] = []
    with Workspace(root, tell=told.append, hooks=table("PreToolUse", command.format(old=old))) as workspace:
        assert not reads(workspace, root)
    assert any(why in line for line in told)
    assert not (tmp_path / "ran").exists()
