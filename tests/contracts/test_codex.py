"""Tests the `codex` dialect beyond its contract: schemas, names, the freeform tool, listing, cut output, warnings."""

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from support.command_line import in_process as command_line
from support.mcp_client import ERAS, in_memory, talk

import handrail
from handrail import ToolRouter, Workspace
from handrail.dialects import codex
from handrail.ops.patch.grammar import GRAMMAR
from handrail.tools.exports.openai_api import openai_responses
from handrail.tools.tool import ToolResult

SCHEMAS = json.loads((Path(__file__).parent / "codex_schemas.json").read_bytes())


def call(workspace: Workspace, tool: str, **params: Any) -> ToolResult:
    return workspace.call("codex", tool, params)


# ── schemas and exports ──


@pytest.mark.parametrize("tool", SCHEMAS)
def test_codex_schemas_equal_reference(tool: str) -> None:
    assert codex.dialect.tools[tool].params.schema() == SCHEMAS[tool]


EXPORTS: dict[str, tuple[Callable[[ToolRouter], Any], Callable[[Any], Any]]] = {
    "functions": (ToolRouter.functions, lambda form: form["parameters"]),
    "openai-chat": (ToolRouter.openai, lambda form: form["function"]["parameters"]),
    "openai-responses": (ToolRouter.openai_responses, lambda form: form["parameters"]),
    "anthropic": (ToolRouter.anthropic, lambda form: form["input_schema"]),
    "gemini": (ToolRouter.gemini, lambda form: form["parametersJsonSchema"]),
    "mcp": (ToolRouter.mcp, lambda form: form["inputSchema"]),
}


@pytest.mark.parametrize("form", EXPORTS)
def test_codex_exports_equal_reference_in_every_format(form: str, workspace: Workspace, root: Path) -> None:
    export, schema = EXPORTS[form]
    printed = command_line("tools", "--dialect", "codex", "--format", form, "--root", str(root)).stdout
    for forms in (export(workspace.tools("codex")), json.loads(printed)):
        listed = forms["functionDeclarations"] if form == "gemini" else forms
        named = [each["function"] if form == "openai-chat" else each for each in listed]
        found = {each["name"]: schema(whole) for each, whole in zip(named, listed, strict=True)}
        assert found == SCHEMAS


def test_codex_json_listing_equals_reference(root: Path) -> None:
    printed = command_line("tools", "--dialect", "codex", "--json", "--root", str(root)).stdout
    assert {each["name"]: each["input_schema"] for each in json.loads(printed)} == SCHEMAS


@pytest.mark.parametrize("era", ERAS)
def test_codex_server_lists_reference_schemas(era: str, workspace: Workspace) -> None:
    async def check(client: Client) -> None:
        listed = (await client.list_tools()).tools
        assert {tool.name: tool.input_schema for tool in listed} == SCHEMAS

    talk(in_memory(workspace, dialect="codex"), check, era)


def test_codex_descriptions_equal_reference() -> None:
    assert {tool.name: tool.description for tool in codex.tool_registrations()} == {
        "list_dir": "List directory entries breadth-first up to a depth.",
        "read_file": "Read a slice of a file with optional indentation formatting.",
        "grep_files": "Recursive regex search with optional include globs.",
        "apply_patch_json": "Apply a unified diff.",
        "apply_patch_freeform": "Apply a patch using the apply_patch freeform envelope (Begin/End Patch).",
        "shell": "Run a shell command with truncation and timeout protections.",
        "exec_command": "Start a PTY-backed long-running command.",
        "write_stdin": "Send input to an existing PTY session created by `exec_command`.",
    }


def test_codex_tools_have_reference_names(workspace: Workspace) -> None:
    assert codex.tool_registrations() == list(codex.dialect.tools.values())
    assert [tool.name for tool in codex.tool_registrations()] == list(SCHEMAS)
    router = workspace.tools("codex")
    assert isinstance(router, ToolRouter)
    assert list(router.tools) == list(SCHEMAS)
    assert handrail.FsBoundary is type(workspace._services.boundary)


def test_codex_approval_required_only_for_changes_and_commands() -> None:
    asking = [tool.name for tool in codex.tool_registrations() if tool.requires_approval]
    assert asking == ["apply_patch_json", "apply_patch_freeform", "shell", "exec_command", "write_stdin"]


def test_freeform_tool_exported_as_custom_tool_with_grammar() -> None:
    custom, plain = openai_responses([codex.apply_patch_freeform, codex.apply_patch_json], custom=True)
    assert custom == {
        "type": "custom",
        "name": "apply_patch_freeform",
        "description": "Edits files by one patch, all of it or none. "
        "The input is the patch itself, as text: do not wrap it in JSON.",
        "format": {"type": "grammar", "syntax": "lark", "definition": GRAMMAR},
    }
    assert codex.apply_patch_freeform.freeform is not None
    assert codex.apply_patch_freeform.freeform.parameter in codex.ApplyPatchInput.fields
    assert plain["type"] == "function"


def test_codex_log_requests_at_info_responses_at_debug(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with Workspace(str(root), approve="auto", log=str(log), log_level="debug") as workspace:
        call(workspace, "list_dir")
    lines = [json.loads(line) for line in log.read_text().split("\n")[:-1]]
    assert [line["level"] for line in lines if "tool" in line or "result" in line][:2] == [
        logging.getLevelName(level) for level in (logging.INFO, logging.DEBUG)
    ]


# ── listing ──


def test_list_dir_deep_tree_with_links_stops_at_limit(workspace: Workspace, root: Path) -> None:
    """List a tree with links that would give endless names if list_dir followed them."""
    (root / "d").mkdir()
    for n in range(20):
        (root / "d" / f"up{n}").symlink_to("..")
    assert call(workspace, "list_dir", depth=10**12, limit=3).output == {"entries": ["d/", "d/up0", "d/up1"]}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every directory")
def test_list_dir_unreadable_directory_listed_without_contents(workspace: Workspace, root: Path) -> None:
    (root / "closed").mkdir(mode=0)
    assert call(workspace, "list_dir").output == {"entries": ["closed/"]}


def test_codex_undecodable_name_is_listed_read_and_patched(workspace: Workspace, root: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    (root / name).mkdir()
    (root / name / "f").write_text("one\n")
    assert call(workspace, "list_dir").output == {"entries": ['"caf\\351/"', '"caf\\351/f"']}
    assert call(workspace, "read_file", path='"caf\\351/f"').output == {"text": "one\n", "truncated": False}
    patch = '*** Begin Patch\n*** Update File: "caf\\351/f"\n@@\n-one\n+two\n*** End Patch\n'
    assert call(workspace, "apply_patch_freeform", patch=patch).output == {
        "results": [{"path": '"caf\\351/f"', "bytes_written": 4, "created": False}]
    }
    assert (root / name / "f").read_text() == "two\n"


# ── commands ──


def test_shell_cut_output_file_readable_by_next_command(workspace: Workspace) -> None:
    cut = call(workspace, "shell", command="seq 1 200000").output
    assert isinstance(cut, dict)
    line = next(line for line in cut["stdout"].split("\n") if "not shown" in line)
    reading = line.partition("all of it: ")[2].removesuffix(" …]")
    assert reading.startswith("tail -n 50 ")
    again = call(workspace, "shell", command=reading).output
    assert isinstance(again, dict)
    assert again["stdout"] == "".join(f"{n}\n" for n in range(199_951, 200_001))
    spool = reading.rpartition(" ")[2]
    assert not str(spool).startswith(workspace.root)
    spoiled = call(workspace, "shell", command=f"echo x >> {spool}; rm -f {spool}").output
    assert isinstance(spoiled, dict)
    assert spoiled["returncode"] != 0
    assert call(workspace, "shell", command=f"wc -l < {spool}").output["stdout"] == "200000\n"  # type: ignore[index]


def test_shell_cut_output_file_readable_in_next_session(root: Path) -> None:
    with Workspace(str(root), approve="auto") as first:
        cut = call(first, "shell", command="seq 1 200000").output
        reading = cut["stdout"].partition("all of it: ")[2].partition(" …]")[0]  # type: ignore[index]
    with Workspace(str(root), approve="auto") as second:
        again = call(second, "shell", command=reading).output
    assert again["stdout"].endswith("\n200000\n")  # type: ignore[index]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (
            "echo x > /usr/evil",
            "the sandbox blocks writes outside the workspace (/usr/evil); only the user can allow them",
        ),
        (
            "exec 3<>/dev/tcp/192.0.2.1/80",
            "the sandbox blocks the network; only the user can allow it",
        ),
        (
            "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
            "the sandbox blocks this change (.git/hooks/pre-commit): the user's own tools would run the file",
        ),
    ],
)
@pytest.mark.parametrize(
    ("dialect", "tool"),
    [("gemini", "run_shell_command"), ("copilot", "run_in_terminal"), ("codex", "shell")],
)
def test_command_refused_by_sandbox_gets_warning(
    workspace: Workspace,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    dialect: str,
    tool: str,
    command: str,
    sentence: str,
) -> None:
    monkeypatch.setenv("SHELL", "/bin/bash")
    (root / ".git").mkdir()
    if call(workspace, "shell", command="true").metadata["sandbox"] != "strict":
        pytest.skip("no bubblewrap here: there are no read-only mounts to be refused by")
    result = workspace.call(dialect, tool, {"command": command})
    assert result.warnings == [sentence]


def test_command_failing_by_itself_gets_no_sandbox_warning(workspace: Workspace) -> None:
    assert call(workspace, "shell", command="cat nowhere; false").warnings == []


def test_write_stdin_denied_types_nothing(root: Path) -> None:
    """Deny one input and allow the next: a contract case has only one answer to all questions."""
    with Workspace(str(root), approver=lambda question: question.params.get("chars") != "bad\n") as workspace:
        call(workspace, "exec_command", session_id="s", cmd="stty -echo; echo up; read x; echo $x > typed")
        denied = call(workspace, "write_stdin", session_id="s", chars="bad\n").error
        assert denied is not None
        assert denied.code == "approval_denied"
        result = call(workspace, "write_stdin", session_id="s", chars="good\n")
        while result.success and result.metadata["alive"]:
            result = call(workspace, "write_stdin", session_id="s", chars="")
    assert (root / "typed").read_text() == "good\n"


def test_write_stdin_program_not_reading_gets_warning(root: Path) -> None:
    limits = {"terminal_write_seconds": 0.2, "terminal_wait_seconds": 0.2}
    with Workspace(str(root), approve="auto", limits=limits) as workspace:
        shown = call(workspace, "exec_command", session_id="s", cmd="stty raw -echo; echo up; exec sleep 600").output
        while "up" not in shown["output"]:  # type: ignore[index]
            shown = call(workspace, "write_stdin", session_id="s", chars="").output
        result = call(workspace, "write_stdin", session_id="s", chars="x" * 1_000_000)
    assert result.success
    (warning,) = result.warnings
    assert warning.startswith("only ")
    assert warning.endswith(" of 1000000 bytes were written: the program does not read its input")


def test_exec_command_unread_output_over_limit_is_truncated(root: Path) -> None:
    with Workspace(str(root), approve="auto", limits={"terminal_bytes": 1000}) as workspace:
        result = call(workspace, "exec_command", session_id="s", cmd="seq 1 10000")
    assert isinstance(result.output, dict)
    assert (result.output["truncated"], result.output["output"][-7:]) == (True, "\n10000\n")


def test_shell_cancelled_returns_message_and_partial_output(workspace: Workspace, root: Path) -> None:
    cancel = threading.Event()

    def wait() -> None:
        while not (root / "started").exists():
            time.sleep(0.005)
        cancel.set()

    threading.Thread(target=wait, daemon=True).start()
    command = "echo early; touch started; sleep 600"
    result = workspace.tools("codex").call("shell", {"command": command}, cancel=cancel)
    assert isinstance(result.output, dict)
    assert result.output["stdout"] == "early\n"
    assert result.output["message"] == "Command was cancelled; it and everything it started was ended"
