"""Checks that no answer tells the model how to allow a refused call, and that loosening needs a terminal."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from support.command_line import ARGV, USER, at_terminal, handrail, usage_error
from support.fault_samples import CHOSEN, CONTEXT, kinds, sample
from support.mcp_client import ERAS, over_stdio, talk
from support.pseudo_terminal import Terminal

from handrail import Verdict, Workspace
from handrail.dialects import NAMES, load
from handrail.errors import DeniedError
from handrail.model.facts import FactRecord
from handrail.model.faults import Denied
from handrail.model.warnings import HookBroken, SandboxRefused
from handrail.policy.rules import Rule
from handrail.surfaces.mcp.mcp_results import to_mcp
from handrail.tools.messages import how_to_allow, render
from handrail.tools.system_prompt import system_prompt
from handrail.tools.tool import ToolResult

SETTINGS = "approve|sandbox|writable|readable|environment|allow_hosts|read_only|guarded|protect|unattended|approver"
KEY = re.compile(rf"\bhandrail [a-z]|(?<![\w-])--[a-z]|HANDRAIL_|\b(?:{SETTINGS}) ?=|\b(?:writable|allow_hosts)\b")
"""A command of ours, an option, a variable or a setting."""
REFUSED = (
    "write_outside",
    "guarded",
    "git_config",
    "packages",
    "network",
    "network_tried",
    "processes",
    "memory",
    "disk",
)


def samples() -> list[FactRecord]:
    """Return one fault or warning of every kind, and one for each thing that a sandbox refuses."""
    others = [sample(kind) for kind in kinds() if kind not in (Denied, HookBroken, SandboxRefused)]
    assert (SandboxRefused, "kind") in CHOSEN
    keyed = [Denied("t", "a reason", "a remedy", "--a-key"), HookBroken("a reason", "--a-key")]
    return [*others, *(SandboxRefused(kind, "/x") for kind in REFUSED), *keyed]


def texts(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("name", NAMES)
def test_fault_texts_do_not_say_how_to_allow(name: str) -> None:
    dialect = load(name)
    for tool in dialect.tools:
        for fault in samples():
            said = render(dialect.tables, tool, fault, CONTEXT)
            assert not KEY.search(texts([*said, dialect.error_output(said)])), said


@pytest.mark.parametrize("name", NAMES)
def test_tool_descriptions_and_prompts_do_not_say_how_to_allow(name: str) -> None:
    dialect = load(name)
    shown = [tool.description + texts(tool.params.schema()) for tool in dialect.tools.values()]
    assert not KEY.search(texts([*shown, system_prompt(dialect, [*dialect.tools.values()])]))


def test_refusal_texts_for_user_say_how_to_allow() -> None:
    tables = load("file").tables
    keys = {type(fault).__name__: how_to_allow(tables, "file.write", fault, CONTEXT) for fault in samples()}
    told = {name for name, key in keys.items() if key}
    # The samples end with a sandbox refusal of kind disk, which nothing allows.
    assert told == {
        "Denied",
        "ForbiddenAddress",
        "HookBroken",
        "ReadOnlyWorkspace",
        "RightsNotGranted",
        "SandboxDemanded",
        "SandboxUnavailable",
    }
    assert all(KEY.search(keys[name]) for name in told)
    hints = [how_to_allow(tables, "file.write", SandboxRefused(kind, "/x"), CONTEXT) for kind in REFUSED]
    assert [bool(KEY.search(hint)) for hint in hints] == [True, False, False, False, True, True, False, False, False]


def _say_no(_question: Any) -> bool:
    return False


def _fail(_question: Any) -> bool:
    raise RuntimeError("broken")


WRITE = ("file", "file.write", {"path": "a", "content": "x"})
SITUATIONS: dict[str, tuple[dict[str, Any], tuple[str, str, dict[str, Any]], str]] = {
    "nobody": ({}, WRITE, "keep a rule: handrail approvals add 'edit a'"),
    "never": ({"approve": "never"}, WRITE, 'Use --approve ask (in Python: approve="ask")'),
    "guarded": ({}, ("file", "file.write", {"path": ".git/hooks/x", "content": "x"}), "Pass approver= to Workspace"),
    "unreadable command": ({}, ("copilot", "run_in_terminal", {"command": "$x rm a"}), "Pass approver= to Workspace"),
    "forbidden": ({}, ("file", "file.delete", {"path": "kept"}), "handrail approvals disable 1 --scope user"),
    "said no": ({"approver": _say_no}, WRITE, ""),
    "failed": ({"approver": _fail}, WRITE, ""),
    "not public": ({"approve": "auto"}, ("copilot", "fetch_webpage", {"url": "http://127.0.0.1/"}), "allow_hosts"),
    "outside": ({"approve": "auto"}, ("codex", "shell", {"command": "echo x > /usr/evil"}), "writable"),
    "network": ({"approve": "auto"}, ("codex", "shell", {"command": "exec 3<>/dev/tcp/192.0.2.1/80"}), "network"),
}


def refused(root: Path, situation: str) -> tuple[ToolResult, list[str]]:
    """Return the answer to the model and the lines for the user."""
    flags, (dialect, tool, params), _ = SITUATIONS[situation]
    (root / "kept").write_text("x")
    told: list[str] = []
    with Workspace(str(root), tell=told.append, **flags) as workspace:
        workspace._rules.add(Rule("file.delete", ".*", deny=True))
        workspace._rules.add(Rule("run_in_terminal", argv=("rm", "..."), deny=True))
        return workspace.call(dialect, tool, params), told


@pytest.mark.parametrize("situation", SITUATIONS)
def test_refusal_tells_user_and_not_model_how_to_allow(root: Path, situation: str) -> None:
    result, told = refused(root, situation)
    assert not KEY.search(texts([result.to_dict(), to_mcp(result)])), result
    key = SITUATIONS[situation][2]
    assert [key in line for line in told] == ([True] if key else [])


def test_refusal_without_tell_is_logged_as_warning(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Workspace(str(root)) as workspace:
        workspace.call(*WRITE)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("handrail", "WARNING")
    assert record.getMessage().startswith('file.write: Pass approver= to Workspace, or approve="auto", or keep a rule')


def test_undo_refused_when_read_only_hides_how_to_allow_from_model(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        workspace.call(*WRITE)
    with Workspace(str(root), read_only=True) as workspace, pytest.raises(DeniedError) as denied:
        workspace.history().undo()
    assert not KEY.search(denied.value.message + denied.value.suggestion)
    assert KEY.search(denied.value.allow)


@pytest.mark.parametrize("arguments", [("call", "file.write", "path=a", "content=x"), ("run",), ("undo",)])
def test_cli_without_terminal_does_not_print_how_to_allow(root: Path, arguments: tuple[str, ...]) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        workspace.call("file", "file.write", {"path": "b", "content": "x"})
    call = json.dumps({"tool": "file.write", "params": {"path": "a", "content": "x"}})
    done = handrail(*arguments, "--root", str(root), stdin=f"{call}\n")
    printed = done.stdout + done.stderr
    assert ("was not approved" in printed, KEY.search(printed)) == (True, None), printed


async def _cannot(context: Any, params: Any) -> Any:
    raise MCPError(-32000, "no screen")


@pytest.mark.parametrize(
    ("era", "options"),
    [(ERAS[0], {}), (ERAS[1], {}), (ERAS[0], {"elicitation_callback": _cannot})],
    ids=["cannot ask", "cannot ask, stateless", "fails to ask"],
)
def test_mcp_says_how_to_allow_only_on_standard_error(
    root: Path, tmp_path: Path, era: str, options: dict[str, Callable[..., Any]]
) -> None:
    async def act(client: Client) -> Any:
        return (await client.call_tool("file.write", WRITE[2])).model_dump_json()

    with open(tmp_path / "stderr", "w") as log:
        answer = talk(stdio_client(over_stdio("--root", root), log), act, era, **options)
    assert not KEY.search(answer), answer
    assert "handrail approvals add 'edit a'" in (tmp_path / "stderr").read_text()
    assert not (root / "a").exists()


def test_mcp_server_continues_when_standard_error_is_not_read(root: Path) -> None:
    """A pipe that is full must not stop it, however many calls are refused."""
    reader, writer = os.pipe()

    async def act(client: Client) -> int:
        for number in range(400):
            write = {"path": f"{number}", "content": "x" * 200}
            assert (await client.call_tool("file.write", write)).is_error
        return 400

    with os.fdopen(writer, "w") as unread, os.fdopen(reader, "rb"):
        assert talk(stdio_client(over_stdio("--root", root), unread), act) == 400


# ── who may loosen the rules ──

LOOSENING = {
    "add": ("approvals", "add", *USER, "file.write", ".*"),
    "enable": ("approvals", "enable", *USER, "1"),
    "remove a denial": ("approvals", "remove", *USER, "2"),
    "disable a denial": ("approvals", "disable", *USER, "2"),
    "config": ("config", "cursor", "--approve", "auto", "--write"),
}
TIGHTENING = {
    "deny": ("approvals", "add", *USER, "file.write", ".*", "--deny"),
    "enable a denial": ("approvals", "enable", *USER, "3"),
    "disable": ("approvals", "disable", *USER, "1"),
    "remove": ("approvals", "remove", *USER, "1"),
    "config": ("config", "cursor", "--write"),
}
RULES = """\
[[rule]]
tool = "file.delete"
pattern = "x"
enabled = false

[[rule]]
tool = "file.delete"
pattern = "y"
deny = true

[[rule]]
tool = "file.delete"
pattern = "z"
deny = true
enabled = false
"""


@pytest.fixture
def rules() -> Path:
    file = Path(os.environ["HANDRAIL_CONFIG_DIR"]) / "approvals.toml"
    file.parent.mkdir(parents=True)
    file.write_text(RULES)
    return file


@pytest.mark.parametrize("which", LOOSENING)
@pytest.mark.parametrize("how", ["no terminal", "input from elsewhere", "not its own terminal"])
def test_loosening_without_terminal_is_refused_without_workaround(
    rules: Path, root: Path, which: str, how: str
) -> None:
    arguments = (*LOOSENING[which], "--root", str(root))
    if how == "no terminal":
        said = usage_error(handrail(*arguments))
    else:
        stdin, controlling = (b"", True) if how == "input from elsewhere" else (None, False)
        with Terminal(*ARGV, *arguments, stdin=stdin, controlling=controlling) as terminal:
            status, _, said = terminal.finish()
        assert status == 2
    assert "weakens approval, and no terminal is attached: the user must run this command" in said
    assert "unattended" not in said
    assert (rules.read_text(), [*root.iterdir()]) == (RULES, [])


@pytest.mark.parametrize("which", TIGHTENING)
def test_tightening_works_without_terminal(rules: Path, root: Path, which: str) -> None:
    assert handrail(*TIGHTENING[which], "--root", str(root)).returncode == 0
    assert "unattended" not in rules.read_text()


@pytest.mark.parametrize("which", LOOSENING)
def test_loosening_at_terminal_is_allowed_and_rule_is_not_marked(rules: Path, root: Path, which: str) -> None:
    assert at_terminal(*LOOSENING[which], "--root", str(root)).returncode == 0
    assert "unattended" not in rules.read_text()


@pytest.mark.parametrize("which", ["add", "enable", "disable a denial"])
def test_rule_loosened_unattended_is_marked(rules: Path, root: Path, which: str) -> None:
    here = ("--root", str(root))
    assert handrail(*LOOSENING[which], "--unattended", *here).returncode == 0
    assert rules.read_text().count("unattended = true") == 1
    listed = handrail("approvals", "list", *here).stdout.split("\n")
    facts = json.loads(handrail("approvals", "list", *here, "--json").stdout)
    number = {"add": 4, "enable": 1, "disable a denial": 2}[which]
    assert [line.split(".")[0].strip() for line in listed if "unattended" in line] == [str(number)]
    assert [each["number"] for each in facts if each.get("unattended")] == [number]


@pytest.mark.parametrize("which", ["remove a denial", "config"])
def test_unattended_change_that_leaves_no_rule_is_allowed(rules: Path, root: Path, which: str) -> None:
    assert handrail(*LOOSENING[which], "--unattended", "--root", str(root)).returncode == 0


def test_unattended_mark_stays_after_rule_is_switched_at_terminal(rules: Path, root: Path) -> None:
    assert handrail("approvals", "enable", *USER, "1", "--unattended", "--root", str(root)).returncode == 0
    for switch in ("disable", "enable"):
        assert at_terminal("approvals", switch, *USER, "1", "--root", str(root)).returncode == 0
    assert rules.read_text().count("unattended = true") == 1


def test_approver_verdict_can_tell_user_how_to_allow(root: Path) -> None:
    told: list[str] = []

    def no(_question: Any) -> Verdict:
        return Verdict(
            False, "the boss", reason="not today", remedy="Wait", how_to_allow="handrail is not mine to open"
        )

    with Workspace(str(root), approver=no, tell=told.append) as workspace:
        result = workspace.call(*WRITE)
    assert (told, KEY.search(texts(result.to_dict()))) == (["file.write: handrail is not mine to open"], None)
