"""Tests that hooks of the user's file run on every surface, and that the command line and the doctor name them."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import handrail, in_process
from support.hooks import HookWriter, own
from support.mcp_client import ERAS, envelope, in_memory, over_stdio, talk

from handrail import Workspace

Caller = Callable[[Path, str, dict[str, Any]], dict[str, Any]]


def by_library(root: Path, tool: str, params: dict[str, Any]) -> dict[str, Any]:
    with Workspace(root, approve="auto") as workspace:
        return workspace.tools("file").call(tool, params).to_dict()


def by_call(root: Path, tool: str, params: dict[str, Any]) -> dict[str, Any]:
    options = ("--json", "--root", str(root), "--approve", "auto")
    return dict(json.loads(handrail("call", *options, tool, json.dumps(params)).stdout))


def by_run(root: Path, tool: str, params: dict[str, Any]) -> dict[str, Any]:
    line = json.dumps({"tool": tool, "params": params})
    done = handrail("run", "--root", str(root), "--approve", "auto", "--dialect", "file", stdin=f"{line}\n")
    return dict(json.loads(done.stdout))


def by_mcp(era: str, *, stdio: bool) -> Caller:
    def caller(root: Path, tool: str, params: dict[str, Any]) -> dict[str, Any]:
        async def act(client: Any) -> dict[str, Any]:
            return envelope(await client.call_tool(tool, params))

        if stdio:
            return dict(talk(over_stdio("--root", root, "--approve", "auto"), act, era))
        with Workspace(root, approve="auto") as workspace:
            return dict(talk(in_memory(workspace), act, era))

    return caller


SURFACES: dict[str, Caller] = {"library": by_library, "call": by_call, "run": by_run}
SURFACES |= {f"mcp-{era}-{stdio}": by_mcp(era, stdio=stdio) for era in ERAS for stdio in (False, True)}


def configure(text: str) -> None:
    home = Path(os.environ["HANDRAIL_CONFIG_DIR"])
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)


@pytest.mark.parametrize("surface", SURFACES)
def test_hooks_of_the_user_run_on_every_surface(root: Path, hook: HookWriter, tmp_path: Path, surface: str) -> None:
    script = tmp_path / "format.py"
    script.write_text(
        "import json, sys, pathlib\n"
        "given = json.load(sys.stdin)\n"
        "path = pathlib.Path(given['cwd'], given['tool_input']['path'])\n"
        "path.write_text(path.read_text().upper())\n"
    )
    configure(
        f"""
[[hooks.PreToolUse]]
matcher = "file.read"
hooks = [{{ type = "command", command = "{hook("echo never >&2; exit 2", "guard")}" }}]

[[hooks.PreToolUse]]
matcher = "file.write"
hooks = [{{ command = "{hook(own(additionalContext="be careful"), "advise")}", timeout = 60 }}]

[[hooks.PostToolUse]]
matcher = "file.write"
hooks = [{{ command = "{hook(f"exec python3 {script}", "format")}" }}]
"""
    )
    call = SURFACES[surface]
    refused = call(root, "file.read", {"path": "a.txt"})
    assert refused["error"]["message"] == "file.read was not approved: a hook of the user refused it: never"
    written = call(root, "file.write", {"path": "a.txt", "content": "one\n"})
    assert written["warnings"] == [
        "be careful",
        "a hook of the user reformatted or changed a.txt after this call; read it again",
    ]
    assert (root / "a.txt").read_text() == "ONE\n"
    shown = json.loads(in_process("show", "2", "--root", str(root), "--json").stdout)  # 2 is what the hook did
    assert (shown["n"], "+ONE" in shown["diff"], "+one" in shown["diff"]) == (1, True, False)
    assert "entry 2 is a part of entry 1" in in_process("undo", "2", "--root", str(root)).stderr
    assert handrail("undo", "--root", str(root), "--approve", "auto").returncode == 0
    assert not (root / "a.txt").exists()


def test_hooks_command_lists_what_is_in_force(root: Path, hook: HookWriter) -> None:
    good = hook("true")
    configure(
        '[[hooks.PreToolUse]]\nmatcher = "Bash|Edit"\npattern = "rm"\n'
        f'hooks = [{{ command = "{good}" }}, {{ command = "./tool" }}]\n'
    )
    (root / "tool").write_text("")
    (root / ".handrail.toml").write_text('[[hooks.PostToolUse]]\nhooks = [{ command = "true" }]\n')
    done = in_process("hooks", "list", "--root", str(root))
    config = f"{os.environ['HANDRAIL_CONFIG_DIR']}/config.toml"
    assert done.stdout.splitlines() == [
        f"PreToolUse of Bash|Edit if the input matches rm, in {config}:",
        f"  {good}",
        f"PreToolUse of Bash|Edit if the input matches rm, in {config}:",
        "  ./tool",
        "  does not run: an agent can write the program ./tool",
        "PostToolUse of *, in .handrail.toml:",
        "  true",
        "  does not run: the user has not trusted this content of the file",
    ]
    listed = json.loads(in_process("hooks", "list", "--root", str(root), "--json").stdout)
    assert [(each["event"], bool(each["refused"])) for each in listed] == [
        ("PreToolUse", False),
        ("PreToolUse", True),
        ("PostToolUse", True),
    ]


def test_hooks_command_without_hooks_says_so(root: Path) -> None:
    assert in_process("hooks", "list", "--root", str(root)).stdout.startswith("No hooks.")
    assert in_process("hooks", cwd=root).stdout.startswith("No hooks.")


@pytest.mark.sandbox
def test_doctor_names_hooks(root: Path) -> None:
    configure('[[hooks.PreToolUse]]\nmatcher = "Bash"\nhooks = [{ command = "true" }, { command = "./tool" }]\n')
    (root / "tool").write_text("")
    lines = in_process("doctor", "--root", str(root)).stdout.splitlines()
    found = [line for line in lines if "PreToolUse" in line]
    assert [line[0] for line in found] == ["✓", "✗"]
    assert "it does not run: an agent can write the program ./tool" in found[1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hooks = 1", "hooks must be a table"),
        ("[hooks]\nPreTool = []", "unknown event 'PreTool' in hooks; did you mean"),
        ("[[hooks.PreToolUse]]\nmatch = 'x'", "unknown key 'match'; did you mean"),
        ("[[hooks.PreToolUse]]\nhooks = [{ type = 'prompt', command = 'x' }]", "type must be 'command'"),
        ("[[hooks.PreToolUse]]\nhooks = [{}]", "a hook needs a command"),
        ("[[hooks.PreToolUse]]\nmatcher = '('\nhooks = [{ command = 'x' }]", "is not a regular expression"),
        ("[[hooks.PreToolUse]]\nhooks = [{ command = 'x', timeout = -1 }]", "timeout must be a number of seconds"),
    ],
)
def test_wrong_hooks_in_the_settings_are_an_error(root: Path, text: str, says: str) -> None:
    configure(text)
    done = in_process("call", "--root", str(root), "file.read", "path=a")
    assert done.returncode == 2
    assert says in done.stderr


def test_hooks_command_names_programs_that_cannot_run(root: Path, hook: HookWriter) -> None:
    plain = Path(hook("true", "plain"))
    plain.chmod(0o644)
    configure(f'[[hooks.PreToolUse]]\nhooks = [{{ command = "{plain}" }}, {{ command = "{plain}x" }}]\n')
    said = in_process("hooks", "list", "--root", str(root)).stdout
    assert f"  does not run: {plain} is not executable\n" in said
    assert f"  does not run: {plain}x is not found, or not a file\n" in said
