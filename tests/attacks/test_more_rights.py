"""Attacks commands that the user gave more rights than the sandbox: the rights must end with the one command."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from support.loopback_server import Site, page

from handrail import Question, ToolResult, Verdict, Workspace
from handrail.kernel.process.jobs import Jobs
from handrail.kernel.sandbox import find_bwrap
from handrail.kernel.sandbox.view import visible_paths
from handrail.model.rights import Rights
from handrail.policy.rules import Rule

pytestmark = pytest.mark.sandbox
CONNECT = """
import os, socket, sys
proxy = os.environ.get("HTTP_PROXY", "")
if not proxy: sys.exit("no proxy")
name, port = proxy.removeprefix("http://").split(":")
sock = socket.create_connection((name, int(port)), 20)
sock.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\nHost: {sys.argv[1]}\\r\\n\\r\\n".encode())
print(sock.recv(100).split()[1].decode())
"""


class Answers:
    """Answers every question with yes, and remembers the questions."""

    def __init__(self, answer: Callable[[Question], Verdict] = lambda _: Verdict.allow()) -> None:
        self.questions: list[Question] = []
        self._answer = answer

    def __call__(self, question: Question) -> Verdict:
        self.questions.append(question)
        return self._answer(question)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    (place / "secret").write_text("secret\n")
    return place


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(page(b"reached")) as found:
        yield found


def opened(root: Path, answers: Any = None, **settings: Any) -> Workspace:
    return Workspace(str(root), approver=answers or Answers(), **settings)


def run(workspace: Workspace, cmd: str, **rights: Any) -> ToolResult:
    asked = {"sandbox_permissions": "with_additional_permissions", "additional_permissions": rights} if rights else {}
    result = workspace.tools("codex-2026").call("exec_command", {"cmd": cmd, "yield_time_ms": 30_000, **asked})
    if not result.success and result.error is not None and result.error.code == "sandbox_unavailable":
        pytest.skip(f"no bubblewrap here: {result.error.message}")
    return result


def code(result: ToolResult) -> int:
    assert isinstance(result.output, dict), result
    found = result.output["exit_code"]
    assert isinstance(found, int)
    return found


def printed(result: ToolResult) -> str:
    assert isinstance(result.output, dict), result
    return str(result.output["output"])


def test_command_reads_and_writes_only_what_was_granted(root: Path, outside: Path) -> None:
    answers = Answers()
    with opened(root, answers) as workspace:
        assert code(run(workspace, f"cat {outside}/secret")) == 1
        read = run(workspace, f"cat {outside}/secret; touch {outside}/made", file_system={"read": [str(outside)]})
        assert printed(read).startswith("secret\n")
        assert not (outside / "made").exists()
        assert code(run(workspace, f"touch {outside}/made", file_system={"write": [str(outside)]})) == 0
        assert (outside / "made").exists()
        assert code(run(workspace, f"cat {outside}/secret")) == 1
    assert [each.rights.words for each in answers.questions] == [
        (),
        (f"read {outside}",),
        (f"write {outside}",),
        (),
    ]


def test_process_left_behind_ends_with_the_rights(root: Path, outside: Path) -> None:
    """Leaves processes in every way that escapes a plain kill; none may write once the command has ended."""
    loop = f"while :; do echo x >> {outside}/grows; done"
    text = f"({loop}) & setsid sh -c '{loop}' & while ! test -s {outside}/grows; do :; done"
    with opened(root) as workspace:
        result = run(workspace, text, file_system={"write": [str(outside)]})
        assert code(result) == 0
        ended = "2 background processes ended with the command: its additional rights were for this command only"
        assert [each for each in result.warnings if "process" in each] in ([ended], [ended.replace("2", "1")])
        size = (outside / "grows").stat().st_size
        run(workspace, "true")
        assert (outside / "grows").stat().st_size == size


def test_granted_hosts_are_those_that_were_refused(root: Path, site: Site) -> None:
    answers, (named, other) = Answers(), (f"127.0.0.1:{site.port}", "127.0.0.1:9")
    (root / "connect.py").write_text(CONNECT)
    with opened(root, answers, network=["github.com"]) as workspace:
        assert printed(run(workspace, f"python3 connect.py {named}")) == "403\n"
        granted = run(workspace, f"python3 connect.py {named}; python3 connect.py {other}", network={"enabled": True})
        assert printed(granted) == "200\n403\n"
        assert printed(run(workspace, f"python3 connect.py {named}")) == "403\n"
    assert answers.questions[1].rights.words == (f"network {named}",)


def test_network_of_a_strict_sandbox_is_every_public_host(root: Path, site: Site) -> None:
    """Asks for the network: services of the user on loopback stay out of reach."""
    answers = Answers()
    (root / "connect.py").write_text(CONNECT)
    with opened(root, answers) as workspace:
        result = run(workspace, f"python3 connect.py 127.0.0.1:{site.port}", network={"enabled": True})
        assert printed(result) == "403\n"
        assert "no proxy" in printed(run(workspace, "python3 connect.py x:80"))
    assert answers.questions[0].rights.words == ("network *",)


@pytest.mark.parametrize("approve", ["auto", "host"])
def test_policy_does_not_grant_rights(root: Path, outside: Path, approve: Literal["auto", "host"]) -> None:
    with Workspace(str(root), approve=approve) as workspace:
        result = run(workspace, "true", file_system={"read": [str(outside)]})
        assert result.error is not None
        assert result.error.code == "approval_denied"
        assert f"only the user or a rule grants read {outside}" in result.error.message


def test_rule_without_rights_does_not_grant_them(root: Path, outside: Path) -> None:
    answers = Answers()
    with opened(root, answers) as workspace:
        workspace._rules.add(Rule("exec_command", argv=("ls", "...")))
        workspace._rules.add(Rule("exec_command", ".*"))
        run(workspace, f"ls {outside}")
        assert answers.questions == []
        run(workspace, f"ls {outside}", file_system={"read": [str(outside)]})
        assert len(answers.questions) == 1


def test_rule_with_rights_grants_no_more_than_it_names(root: Path, outside: Path, site: Site) -> None:
    answers = Answers(lambda _: Verdict.deny())
    (root / "connect.py").write_text(CONNECT)
    named = f"127.0.0.1:{site.port}"
    with opened(root, answers) as workspace:
        words = ("python3", "connect.py", "...")
        workspace._rules.add(Rule("exec_command", argv=words, rights=(f"network {named}",)))
        reached = run(workspace, f"python3 connect.py {named}", network={"enabled": True})
        assert printed(reached) == "200\n"
        assert reached.metadata["rights"] == [f"network {named}"]
        assert printed(run(workspace, "python3 connect.py example.org:443", network={"enabled": True})) == "403\n"
        assert answers.questions == []
        files = {"read": [str(outside)]}
        more = run(workspace, f"python3 connect.py {named}", network={"enabled": True}, file_system=files)
        other = run(workspace, "python3 -c 1", network={"enabled": True})
        assert not more.success
        assert not other.success


def test_yes_for_always_keeps_the_rights_in_the_rule(root: Path, outside: Path) -> None:
    answers = Answers(lambda _: Verdict.allow(remember="session"))
    with opened(root, answers) as workspace:
        for _ in range(2):
            assert code(run(workspace, f"cat {outside}/secret", file_system={"read": [str(outside)]})) == 0
        assert len(answers.questions) == 1


def test_approver_that_grants_less_is_obeyed_and_kept(root: Path, outside: Path) -> None:
    fewer = Rights(read=(str(outside),))
    answers = Answers(lambda _: Verdict.allow(remember="session")._replace(rights=fewer))
    with opened(root, answers) as workspace:
        asked = {"read": [str(outside)], "write": [str(outside)]}
        for count in (1, 2):
            result = run(workspace, f"cat {outside}/secret; touch {outside}/made", file_system=asked)
            assert result.metadata["rights"] == [f"read {outside}"]
            assert len(answers.questions) == count  # the rule that was kept names less than the call asks for
        assert not (outside / "made").exists()


def test_guarded_file_is_asked_every_time_and_guarded_again(root: Path) -> None:
    answers = Answers(lambda _: Verdict.allow(remember="session"))
    with opened(root, answers) as workspace:
        wanted = {"write": [f"{root}/.vscode/settings.json", f"{root}/.mcp.json"]}
        make = "mkdir -p .vscode && echo 1 > .vscode/settings.json && echo 2 > .mcp.json"
        assert code(run(workspace, make)) != 0
        for _ in range(2):
            assert code(run(workspace, make, file_system=wanted)) == 0
        assert (root / ".mcp.json").read_text() == "2\n"
        assert code(run(workspace, "echo 3 > .mcp.json")) != 0
        assert code(run(workspace, "echo 3 > .vscode/settings.json")) != 0
    asked = [each for each in answers.questions if each.guarded]
    assert [(each.guarded, each.rights.words) for each in asked] == [
        (".vscode", ("write .vscode", "write .mcp.json"))
    ] * 2


@pytest.mark.parametrize(
    "path", ["/", "/proc", "/proc/1", "/dev", "/sys", "/run", "ROOT/..", "ROOT/../x", "ROOT/.git/config", "/missing"]
)
def test_places_that_the_sandbox_needs_are_never_granted(root: Path, path: str) -> None:
    (root / ".git").mkdir()
    answers = Answers()
    with opened(root, answers) as workspace:
        result = run(workspace, "true", file_system={"write": [path.replace("ROOT", str(root))]})
        assert result.error is not None
        assert result.error.code == "rights_not_granted"
    assert answers.questions == []


def test_link_of_the_agent_is_not_granted_and_other_links_are_shown(root: Path, outside: Path) -> None:
    answers = Answers()
    (root / "link").symlink_to(outside)
    shown = outside.parent / "shown"
    shown.symlink_to(outside)
    with opened(root, answers) as workspace:
        run(workspace, f"cat {root}/link/secret", file_system={"read": [f"{root}/link"]})
        assert code(run(workspace, f"cat {outside}/secret", file_system={"read": [str(shown)]})) == 0
    assert [each.rights.words for each in answers.questions] == [(), (f"read {outside}",)]


def test_own_directories_of_handrail_stay_covered(root: Path, tmp_path: Path) -> None:
    state = Path(os.environ["HANDRAIL_STATE_DIR"])
    with opened(root) as workspace:
        result = run(workspace, f"ls {state}", file_system={"read": [str(state)]})
        assert not result.success or printed(result) == "" or code(result) != 0


def test_requested_rights_are_for_the_next_command_only(root: Path, outside: Path) -> None:
    answers = Answers()
    with opened(root, answers) as workspace:
        asked = {"permissions": {"file_system": {"read": [str(outside)]}}, "reason": "to look"}
        granted = workspace.tools("codex-2026").call("request_permissions", asked)
        assert granted.output == {"permissions": asked["permissions"], "scope": "turn"}
        assert printed(run(workspace, f"cat {outside}/secret")) == "secret\n"
        assert code(run(workspace, f"cat {outside}/secret")) == 1
    assert [each.rights.words for each in answers.questions] == [(f"read {outside}",), (f"read {outside}",), ()]
    assert answers.questions[0].justification == "to look"


def test_gemini_asks_for_the_same_rights(root: Path, outside: Path) -> None:
    answers = Answers()
    with opened(root, answers) as workspace:
        asked = {"network": True, "fileSystem": {"read": [str(outside)]}}
        params = {"command": f"cat {outside}/secret", "description": "Look", "additional_permissions": asked}
        result = workspace.tools("gemini-3").call("run_shell_command", params)
        assert "secret" in str(result.output)
    assert answers.questions[0].rights.words == ("network *", f"read {outside}")
    assert answers.questions[0].justification == "Look"


def test_input_for_a_job_with_rights_shows_them(root: Path, outside: Path) -> None:
    answers = Answers()
    with opened(root, answers) as workspace:
        started = workspace.tools("codex-2026").call(
            "exec_command",
            {
                "cmd": "cat",
                "tty": True,
                "yield_time_ms": 250,
                "sandbox_permissions": "with_additional_permissions",
                "additional_permissions": {"file_system": {"read": [str(outside)]}},
            },
        )
        assert isinstance(started.output, dict)
        typed = {"session_id": started.output["session_id"], "chars": "x\n"}
        workspace.tools("codex-2026").call("write_stdin", typed)
    assert [each.rights.words for each in answers.questions] == [(f"read {outside}",)] * 2


def test_history_and_log_name_the_rights(root: Path, outside: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with opened(root, log=str(log)) as workspace:
        run(workspace, "echo made > made", file_system={"read": [str(outside)]})
        entry = workspace.history().entries()[0]
        assert f"(with read {outside})" in entry.entry.origin.about
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (found,) = [line for line in lines if line["event"] == "rights"]
    assert (found["command"], found["rights"]) == ("echo made > made", [f"read {outside}"])


def test_other_processes_of_the_session_live_on(root: Path, outside: Path) -> None:
    """Runs a command with rights beside a job of the session: its sandbox, with all that it guards, stays."""
    with opened(root) as workspace:
        tools = workspace.tools("codex-2026")
        started = tools.call("exec_command", {"cmd": "cat", "tty": True, "yield_time_ms": 250})
        assert isinstance(started.output, dict)
        assert code(run(workspace, "touch .vscode/x", file_system={"read": [str(outside)]})) != 0
        typed = tools.call("write_stdin", {"session_id": started.output["session_id"], "chars": "alive\n"})
        assert "alive" in printed(typed)
        result = run(workspace, "touch .vscode/x")
        assert code(result) != 0
        assert not any("had stopped" in each for each in result.warnings)
    assert not (root / ".vscode").exists()


def test_single_file_is_granted_without_its_neighbours(root: Path, outside: Path) -> None:
    (outside / "other").write_text("other\n")
    with opened(root) as workspace:
        asked = {"read": [str(outside / "secret")]}
        assert printed(run(workspace, f"cat {outside}/*", file_system=asked)) == "secret\n"


def test_session_that_closes_ends_a_running_command_with_rights(root: Path, outside: Path) -> None:
    with opened(root) as workspace:
        text = f"while :; do echo x >> {outside}/grows; sleep 0.01; done"
        asked = {"cmd": text, "yield_time_ms": 250, "sandbox_permissions": "with_additional_permissions"}
        rights = {"file_system": {"write": [str(outside)]}}
        started = workspace.tools("codex-2026").call("exec_command", {**asked, "additional_permissions": rights})
        assert isinstance(started.output, dict)
        assert "session_id" in started.output
    size = (outside / "grows").stat().st_size if (outside / "grows").exists() else 0
    with opened(root) as workspace:
        run(workspace, "true")
    assert ((outside / "grows").stat().st_size if size else 0) == size


def test_reduced_sandbox_grants_no_rights(root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    answers = Answers()
    with opened(root, answers, allow_reduced=True) as workspace:
        result = run(workspace, "true", network={"enabled": True}, file_system={"read": [str(outside)]})
        assert result.error is not None
        assert result.error.code == "rights_not_granted"
    assert answers.questions == []


def test_commands_right_after_one_with_rights_always_start(root: Path, outside: Path) -> None:
    """Starts the sandbox of the session while that of the command with rights gives its names back, many times."""
    for _ in range(8):
        with opened(root) as workspace:
            assert code(run(workspace, "true", file_system={"read": [str(outside)]})) == 0
            result = workspace.tools("codex-2026").call("exec_command", {"cmd": "true", "yield_time_ms": 30_000})
            assert result.success, result.error


@pytest.mark.parametrize("kind", ["read", "write"])
def test_place_that_a_job_exchanged_during_question_is_refused(root: Path, outside: Path, kind: str) -> None:
    """Shows the user a directory; a job that may write beside it puts a link to another one in its place."""
    shown, other, go = outside / "shown", outside.parent / "other", root / "go"
    for place in (shown, other):
        place.mkdir()
        place.chmod(0o777)
    os.mkfifo(go)
    go.chmod(0o666)

    def answer(question: Question) -> Verdict:
        if f"{kind} {shown}" in question.rights.words:
            go.write_text("go\n")
            go.read_text()
        return Verdict.allow()

    exchange = f"read x < go; mv {shown} {outside}/old; ln -s {other} {shown}; echo done > go; sleep 600"
    with opened(root, answer) as workspace:
        rights = {"file_system": {"write": [str(outside)]}}
        asked = {"sandbox_permissions": "with_additional_permissions", "additional_permissions": rights}
        workspace.tools("codex-2026").call("exec_command", {"cmd": exchange, "yield_time_ms": 250, **asked})
        result = run(workspace, f"ls {shown}/; echo planted > {shown}/planted", file_system={kind: [str(shown)]})
        assert result.error is not None
        assert result.error.code == "rights_not_granted"
    assert shown.is_symlink()
    assert list(other.iterdir()) == []


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize(
    ("owner", "step"), [(Jobs, "_refuse_moved"), (visible_paths, "within_reach")], ids=["check", "mount"]
)
def test_place_that_another_process_exchanged_after_check_is_refused(
    root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, kind: str, owner: Any, step: str
) -> None:
    """Puts a link in the place of a granted directory after the last check, as a program outside the sandbox can."""
    shown, other = outside / "shown", outside.parent / "other"
    for place in (shown, other):
        place.mkdir()
        place.chmod(0o777)
    checked = getattr(owner, step)

    def exchange(*given: Any) -> Any:
        found = checked(*given)
        if not shown.is_symlink() and (step == "_refuse_moved" or (str(shown), str(shown)) in found):
            shown.rename(outside / "old")
            shown.symlink_to(other)
        return found

    monkeypatch.setattr(owner, step, exchange)
    with opened(root) as workspace:
        result = run(workspace, f"ls {shown}/; echo planted > {shown}/planted", file_system={kind: [str(shown)]})
        assert result.error is not None
        assert result.error.code == "rights_not_granted"
        assert f"{kind} {shown}" in result.error.message
        assert code(run(workspace, "true")) == 0
    assert shown.is_symlink()
    assert list(other.iterdir()) == []


def test_process_beside_guarded_right_ends_with_it(root: Path) -> None:
    """Waits without rights until a command that may write .vscode removes what covers it, and would go on after it."""
    with opened(root) as workspace:
        tools = workspace.tools("codex-2026")
        waits = "until echo planted > .vscode/tasks.json; do sleep 0.05; done 2>/dev/null; sleep 600"
        started = tools.call("exec_command", {"cmd": waits, "yield_time_ms": 250})
        assert isinstance(started.output, dict)
        make = "mkdir -p .vscode && echo 1 > .vscode/settings.json"
        assert code(run(workspace, make, file_system={"write": [".vscode"]})) == 0
        ended = tools.call("write_stdin", {"session_id": started.output["session_id"], "yield_time_ms": 60_000})
        assert any("the sandbox stopped" in each for each in ended.warnings)
        assert (root / ".vscode" / "settings.json").read_text() == "1\n"
