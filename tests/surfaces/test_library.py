"""The library as a user meets it: construction, errors, async calls, verdicts, results, routers."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import handrail
from handrail import Keep, Question, Verdict, Workspace
from handrail.dialects.output_types import FileRead
from handrail.errors import (
    ClosedError,
    DeniedError,
    HandrailError,
    SettingsError,
    UndoError,
    UnknownDialectError,
    UnknownToolError,
    WorkspaceError,
)
from handrail.settings import Settings

PYRIGHT = os.environ.get("HANDRAIL_PYRIGHT")  # read before the tests clear such variables
WRITE = {"path": "a.txt", "content": "a\n"}


def test_workspace_takes_a_path_object(root: Path) -> None:
    (root / "a.txt").write_text("a\n")
    with Workspace(root) as workspace:
        assert workspace.call("file", "file.read", {"path": "a.txt"}).success
        assert workspace.root == str(root.resolve())


def test_workspace_spells_out_every_setting() -> None:
    named = Workspace.__init__.__annotations__.keys() - {"root", "approver", "tell", "return"}
    assert named == set(Settings._fields) - {"rules"} | {"layered", "image", "workdir"}
    assert all(f"        {name}: " in (Workspace.__doc__ or "") for name in named)


def test_workspace_with_unknown_keyword_raises_type_error(root: Path) -> None:
    with pytest.raises(TypeError, match="sandbx"):
        Workspace(root, sandbx="off")  # type: ignore[call-arg]


def test_from_settings_takes_settings_by_name(root: Path) -> None:
    with Workspace.from_settings(root, {"approve": "auto", "limits": {"edit_bytes": 5}}) as workspace:
        assert (workspace.settings.approve, workspace.settings.limits.edit_bytes) == ("auto", 5)
    with pytest.raises(SettingsError, match="aprove"):
        Workspace.from_settings(root, {"aprove": "auto"})


def test_missing_root_raises_with_a_suggestion(root: Path) -> None:
    (root / "project").mkdir()
    with pytest.raises(WorkspaceError) as caught:
        Workspace(root / "projct")
    assert str(caught.value) == f"cannot open the workspace {root}/projct: directory not found; did you mean project?"
    with pytest.raises(WorkspaceError, match=r"cannot open the workspace /nope: directory not found"):
        Workspace("/nope")


def test_unknown_dialect_raises_with_a_suggestion(root: Path) -> None:
    with Workspace(root) as workspace, pytest.raises(UnknownDialectError, match=r"'codx'; did you mean codex\?"):
        workspace.tools("codx")
    with Workspace(root) as workspace, pytest.raises(UnknownDialectError, match="Known dialects: gemini, context"):
        workspace.tools("..os")


def test_all_errors_have_one_base_and_are_exported() -> None:
    defined = {name for name in vars(handrail.errors) if name.endswith("Error")}
    assert defined == {name for name in handrail.__all__ if name.endswith("Error")}
    assert all(issubclass(getattr(handrail, name), HandrailError) for name in defined)


def test_closed_workspace_raises_closed_error_and_calls_answer(root: Path) -> None:
    workspace = Workspace(root)
    workspace.close()
    with pytest.raises(ClosedError, match="the workspace is closed"):
        workspace.session()
    error = workspace.call("file", "file.read", {"path": "a"}).error
    assert error is not None
    assert "closed" in repr(workspace)


def test_denied_undo_raises_with_reason_and_way(root: Path) -> None:
    with Workspace(root, approve="auto") as workspace:
        workspace.call("file", "file.write", WRITE)
    with Workspace(root) as workspace, pytest.raises(DeniedError) as caught:
        workspace.history().undo()
    assert caught.value.message
    assert "approver=" in caught.value.allow
    with Workspace(root, approve="auto") as workspace, pytest.raises(UndoError):
        workspace.history().undo(99)


def test_library_without_approver_is_told_about_approver(root: Path) -> None:
    said: list[str] = []
    with Workspace(root, tell=said.append) as workspace:
        result = workspace.call("file", "file.write", WRITE)
    assert result.error is not None
    assert said[0].startswith('file.write: Pass approver= to Workspace, or approve="auto"')
    assert "--" not in result.text


# ── async ──


def test_acall_runs_tools_side_by_side(root: Path) -> None:
    both = threading.Barrier(2, timeout=60)

    def approver(_: Question) -> bool:
        both.wait()  # passes only if both calls are asked at the same time
        return True

    async def main() -> list[bool]:
        async with Workspace(root, approver=approver) as workspace:
            tools = workspace.tools("file")
            calls = [tools.acall("file.write", {"path": name, "content": "x"}) for name in ("a", "b")]
            return [result.success for result in await asyncio.gather(*calls)]

    assert asyncio.run(main()) == [True, True]
    assert (root / "a").read_text() == (root / "b").read_text() == "x"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_async_approver_answers_in_the_callers_loop(root: Path, backend: str) -> None:
    if backend == "trio":
        pytest.importorskip("trio")
    loops: list[object] = []

    async def approver(question: Question) -> Verdict:
        await anyio.lowlevel.checkpoint()
        loops.append(threading.get_ident())
        return Verdict.allow() if question.tool == "file.write" else Verdict.deny("no")

    async def main() -> bool:
        async with Workspace(root, approver=approver) as workspace:
            loops.append(threading.get_ident())
            return (await workspace.acall("file", "file.write", WRITE)).success

    assert anyio.run(main, backend=backend)
    assert loops[0] == loops[1]


def test_async_approver_answers_a_call_without_a_loop(root: Path) -> None:
    async def approver(_: Question) -> bool:
        await asyncio.sleep(0)
        return True

    with Workspace(root, approver=approver) as workspace:
        assert workspace.call("file", "file.write", WRITE).success


def test_async_approver_that_fails_refuses(root: Path) -> None:
    async def approver(_: Question) -> bool:
        raise RuntimeError("no line")

    with Workspace(root, approver=approver) as workspace:
        error = workspace.call("file", "file.write", WRITE).error
    assert error is not None
    assert "asking failed with RuntimeError: no line" in error.message
    assert not (root / "a.txt").exists()


def test_cancelled_acall_cancels_the_command(root: Path) -> None:
    os.mkfifo(root / "began")
    began = os.open(root / "began", os.O_RDONLY | os.O_NONBLOCK)

    async def main() -> None:
        said = asyncio.Event()
        async with Workspace(root, approve="auto") as workspace:
            command = {"command": "echo yes > began; sleep 600", "workdir": None, "timeout_ms": 600_000}
            call = asyncio.create_task(workspace.acall("codex", "shell", command))
            asyncio.get_running_loop().add_reader(began, said.set)
            waiting = asyncio.create_task(said.wait())
            await asyncio.wait({call, waiting}, return_when=asyncio.FIRST_COMPLETED)
            assert not call.done(), call.result()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    try:
        asyncio.run(main())  # closing the workspace waits for the command: it would take ten minutes
    finally:
        os.close(began)


# ── verdicts ──


def test_verdict_allow_remembers_a_call(root: Path) -> None:
    asked: list[str] = []

    def approver(question: Question) -> Verdict:
        asked.append(question.tool)
        return Verdict.allow(remember="project")

    for _ in range(2):
        with Workspace(root, approver=approver) as workspace:
            assert workspace.call("file", "file.write", WRITE).success
        (root / "a.txt").unlink()
    assert asked == ["file.write"]
    assert Verdict.allow(remember=Keep("user", hours=8)).keep == Keep("user", hours=8)
    assert not Verdict.allow().always


def test_verdict_deny_tells_the_model_why(root: Path) -> None:
    with Workspace(root, approver=lambda _: Verdict.deny("not on Fridays")) as workspace:
        result = workspace.call("file", "file.write", WRITE)
    assert result.error is not None
    assert "not on Fridays" in result.error.message
    assert "Ask what to do instead" in result.text


# ── results ──


def test_result_text_holds_output_suggestion_and_warnings(root: Path) -> None:
    (root / "a.txt").write_text("a\n")
    with Workspace(root, approve="auto") as workspace:
        good = workspace.call("file", "file.read", {"path": "a.txt"})
        bad = workspace.call("file", "file.read", {"path": "b.txt"})
    assert '"content"' in good.text
    assert bad.error is not None
    assert bad.error.suggestion in bad.text


def test_result_output_as_types_the_output(root: Path) -> None:
    (root / "a.txt").write_text("a\n")
    with Workspace(root) as workspace:
        read = workspace.call("file", "file.read", {"path": "a.txt"}).output_as(FileRead)
        missing = workspace.call("file", "file.read", {"path": "b.txt"})
    assert read["total_lines"] == 1
    with pytest.raises(TypeError, match=r"file\.read is not a FileRead"):
        missing.output_as(FileRead)
    with pytest.raises(TypeError, match="is not a str"):
        missing.output_as(str)


# ── routers ──


def test_only_offers_and_runs_only_these_tools(root: Path) -> None:
    with Workspace(root, approve="auto") as workspace:
        few = workspace.tools("file").only("file.read")
        assert [form["name"] for form in few.anthropic()] == ["file_read"]
        error = few.call("file.write", WRITE).error
        assert error is not None
        assert error.code == "unknown_tool"
        with pytest.raises(UnknownToolError, match=r"file\.reed; did you mean file\.read\?"):
            workspace.tools("file").only("file.reed")
    assert not (root / "a.txt").exists()


def test_renamed_tool_runs_under_its_new_name_only(root: Path) -> None:
    (root / "a.txt").write_text("a\n")
    questions: list[Question] = []

    def approver(question: Question) -> bool:
        questions.append(question)
        return True

    with Workspace(root, approver=approver) as workspace:
        tools = workspace.tools("file").renamed({"file.read": "read", "file.write": "write"})
        assert "read" in [form["function"]["name"] for form in tools.openai()]
        result = tools.call("read", {"path": "a.txt"})
        assert (result.success, result.tool) == (True, "read")
        assert not tools.call("file.read", {"path": "a.txt"}).success
        assert tools.call_named("write", '{"path": "b.txt", "content": "b"}').success
        assert tools.only("read").renamed({"read": "cat"}).call("cat", {"path": "a.txt"}).success
        with pytest.raises(ValueError, match="same name"):
            workspace.tools("file").renamed({"file.read": "file.write"})
    assert [question.tool for question in questions] == ["file.write"]  # rules know the tool by its own name


def test_read_only_workspace_offers_reading_commands_only(root: Path) -> None:
    (root / "a.txt").write_text("one\n")
    editor, path = "str_replace_based_edit_tool", str(root / "a.txt")
    with Workspace(str(root), approve="auto") as workspace:
        made = {"command": "create", "path": "/memories/a.md", "file_text": "kept\n"}
        assert workspace.call("claude", "memory", made).success
        narrow = workspace.tools("claude").read_only()
    with Workspace(str(root), approve="auto", read_only=True) as workspace:
        router = workspace.tools("claude")
        assert [*router.tools] == [*narrow.tools] == [editor, "memory"]
        for form in router.functions():
            assert form["parameters"]["properties"]["command"]["enum"] == ["view"]
            assert {*form["parameters"]["properties"]} == {"command", "path", "view_range"}
        assert {form["annotations"]["readOnlyHint"] for form in router.mcp()} == {True}
        assert "one" in router.call(editor, {"command": "view", "path": path}).text
        assert "kept" in router.call("memory", {"command": "view", "path": "/memories/a.md"}).text
        for tool, place in ((editor, str(root / "b.txt")), ("memory", "/memories/b.md")):
            refused = router.call(tool, {"command": "create", "path": place, "file_text": "x"})
            assert refused.output == (
                f"Unrecognized command create. The allowed commands for the {tool} tool are: view"
            )
        gone = router.call("memory", {"command": "delete", "path": "/memories/a.md"})
        assert not gone.success
        assert "kept" in router.call("memory", {"command": "view", "path": "/memories/a.md"}).text
    assert sorted(each.name for each in root.iterdir()) == ["a.txt"]


def test_read_only_router_keeps_no_tool_that_changes(root: Path) -> None:
    with Workspace(root, approve="auto") as workspace:
        tools = workspace.tools("codex").read_only()
        assert not any(tool.requires_approval for tool in tools.tools.values())
        assert tools.tools
        assert not tools.call("shell", {"command": "touch a"}).success
    assert not (root / "a").exists()


def test_null_for_an_optional_parameter_means_not_given(root: Path) -> None:
    (root / "a.txt").write_text("a\n")
    with Workspace(root) as workspace:
        tools = workspace.tools("file")
        given: dict[str, Any] = {"path": "a.txt", "limit": None}
        assert tools.call("file.read", given).output == tools.call("file.read", {"path": "a.txt"}).output


# ── notebooks and type checkers ──


def test_dir_and_reprs_say_what_is_there(root: Path) -> None:
    assert "Workspace" in dir(handrail)
    assert "import_module" not in dir(handrail)
    with Workspace(root) as workspace:
        assert repr(workspace) == f"<Workspace {workspace.root}: approve ask, sandbox strict>"
        assert repr(workspace.tools("file")).startswith("<ToolRouter file: file.read, ")


def test_public_attributes_lead_to_no_kernel_object(root: Path) -> None:
    with Workspace(root) as workspace, workspace.session() as session:
        for thing in (workspace, session, workspace.tools("file")):
            public = {name: value for name, value in vars(thing).items() if not name.startswith("_")}
            homes = {name: type(value).__module__ for name, value in public.items()}
            kernel = {name for name, home in homes.items() if home.startswith(("handrail.kernel", "handrail.runtime"))}
            assert kernel <= {"log"}


def _snippets(directory: Path) -> list[str]:
    """Write the README's Python into files of a user's project."""
    readme = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")
    snippets = [part.split("```")[0] for part in readme.split("```python\n")[1:]]
    assert snippets
    for number, snippet in enumerate(snippets):
        (directory / f"snippet{number}.py").write_text(snippet, encoding="utf-8")
    return [str(file) for file in directory.glob("*.py")]


def _mypy(directory: Path, *files: str) -> subprocess.CompletedProcess[str]:
    options = ["--strict", "--cache-dir", str(directory / "cache"), "--config-file", ""]
    argv = [sys.executable, "-m", "mypy", *options, *files]
    return subprocess.run(argv, cwd=directory, capture_output=True, text=True, check=False)


def test_readme_snippet_passes_mypy_strict_in_a_users_project(tmp_path: Path) -> None:
    done = _mypy(tmp_path, *_snippets(tmp_path))
    assert done.returncode == 0, done.stdout
    wrong = tmp_path / "wrong.py"
    wrong.write_text('from handrail import Workspace\nWorkspace(".", sandbx="off")\nWorkspace(".", sandbox="of")\n')
    errors = _mypy(tmp_path, str(wrong)).stdout
    assert 'Unexpected keyword argument "sandbx"' in errors
    assert 'Argument "sandbox" to "Workspace" has incompatible type' in errors


def test_readme_snippet_passes_pyright_strict_in_a_users_project(tmp_path: Path) -> None:
    if not PYRIGHT:
        pytest.skip("needs pyright: make test-typing")
    _snippets(tmp_path)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    argv = [PYRIGHT, "--pythonpath", sys.executable, "--project", str(tmp_path)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
