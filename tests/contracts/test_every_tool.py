"""Tests what holds for every tool, from its declaration, and counts the cases that the catalogue requires."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import contract_cases, run_coverage, tool_scenarios

from handrail import Workspace
from handrail.dialects import NAMES
from handrail.tools.schema import Field
from handrail.tools.tool import Tool

TOOLS = tool_scenarios.every_tool()
WITH_PATHS = [tool for tool in TOOLS if tool.params.paths]
OUTSIDE_CODES = {"path_outside_workspace", "path_outside_working_dir", "path_outside_memory"}
ABSOLUTE_ONLY = {"gemini", "claude", "claude-code"}


def name_of(tool: Tool) -> str:
    return f"{tool.dialect}.{tool.name}"


@pytest.fixture
def planted(root: Path) -> Path:
    tool_scenarios.plant(root)
    (root / "out").symlink_to("/")
    tool_scenarios.memory_of(root)
    return root


@pytest.mark.parametrize("name", NAMES)
def test_dialect_tool_order_matches_contract(name: str) -> None:
    cases = contract_cases.read(contract_cases.CONTRACTS / f"{name}.md")
    assert [tool.name for tool in TOOLS if tool.dialect == name] == list(dict.fromkeys(case.tool for case in cases))


@pytest.mark.parametrize("tool", TOOLS, ids=name_of)
def test_every_tool_example_call_succeeds(tool: Tool, planted: Path) -> None:
    with Workspace(str(planted), approve="auto") as workspace:
        params = tool_scenarios.example(tool, planted)
        tool_scenarios.prepare(workspace, tool, params)
        result = workspace.call(tool.dialect, tool.name, params)
    assert result.success is (tool.name not in tool_scenarios.NEEDS_MORE), result


@pytest.mark.parametrize("tool", TOOLS, ids=name_of)
def test_every_tool_bad_parameters_named_and_nothing_changed(tool: Tool, planted: Path) -> None:
    before = sorted(path.name for path in planted.rglob("*") if not path.is_symlink())
    with Workspace(str(planted), approve="auto") as workspace:
        for name, params in tool_scenarios.wrong_parameters(tool, planted):
            result = workspace.call(tool.dialect, tool.name, params)
            assert result.error is not None, (params, result)
            assert result.error.code == "invalid_parameters", (params, result)
            assert name in result.error.message, (params, result)
            assert result.error.suggestion
        for whole in (["x"], "x", 7):
            result = workspace.call(tool.dialect, tool.name, whole)
            assert result.error is not None
            assert result.error.code == "invalid_parameters"
    assert sorted(path.name for path in planted.rglob("*") if not path.is_symlink()) == before


@pytest.mark.parametrize("tool", WITH_PATHS, ids=name_of)
def test_every_tool_outside_path_is_refused(tool: Tool, planted: Path) -> None:
    with Workspace(str(planted), approve="auto") as workspace:
        for path, params in tool_scenarios.path_scenarios(tool, planted, tool_scenarios.OUTSIDE_PATHS):
            result = workspace.call(tool.dialect, tool.name, params)
            assert result.error is not None, (path, result)
            absolute_directory = (tool.dialect, tool.name) == (
                "gemini",
                "run_shell_command",
            )  # its contract refuses every absolute path first
            expected = {"invalid_parameters"} if absolute_directory else OUTSIDE_CODES
            assert result.error.code in expected, (path, result)
    assert not (planted.parent / "x").exists()


@pytest.mark.parametrize("tool", WITH_PATHS, ids=name_of)
def test_every_tool_path_below_file_is_missing_or_blocked(tool: Tool, planted: Path) -> None:
    """Call with a path below a file: nothing exists there, and a tool that creates names the file in the way."""
    for field in sorted(tool.params.paths):
        params = tool_scenarios.example_with(tool, field, planted)
        below = f"a.txt/{Path(params[field]).name}"
        relative = (tool.dialect, tool.name) == ("gemini", "run_shell_command")
        path = below if relative else f"{tool.params.mount or planted}/{below}"
        with Workspace(str(planted), approve="auto") as workspace:
            error = workspace.call(tool.dialect, tool.name, {**params, field: path}).error
        assert error is not None
        creates = "new" in params[field] or field in ("new_path", "move_to")
        if not creates:
            assert error.code == "file_not_found", error
        else:
            assert "'a.txt' is a file" in error.message + error.suggestion, error


@pytest.mark.parametrize("tool", TOOLS, ids=name_of)
def test_every_tool_null_or_empty_optional_parameter_is_not_given(tool: Tool, planted: Path) -> None:
    def parsed(given: dict[str, Any], declared: Field) -> Any:
        return getattr(tool.params.parse(tool.params.normal(given)), declared.attribute)

    for name, declared in tool.params.fields.items():
        if not declared.required:
            omitted = tool_scenarios.example(tool, planted)
            omitted.pop(name, None)
            for nothing in (None,) if declared.may_be_empty else (None, ""):
                assert parsed({**omitted, name: nothing}, declared) == parsed(omitted, declared), name


@pytest.mark.parametrize("path", ["..", "out", "out/etc", "src/../..", "src/../../x"])
@pytest.mark.parametrize(
    "tool", [tool for tool in WITH_PATHS if "RunCommands" in tool.required_permissions], ids=name_of
)
def test_every_tool_command_outside_directory_is_refused(tool: Tool, path: str, planted: Path) -> None:
    (directory,) = tool.params.paths
    with Workspace(str(planted), approve="auto", sandbox="off") as workspace:
        result = workspace.call(tool.dialect, tool.name, {**tool_scenarios.example(tool, planted), directory: path})
    assert result.error is not None
    assert result.error.code in OUTSIDE_CODES


@pytest.mark.parametrize("tool", WITH_PATHS, ids=name_of)
def test_every_tool_windows_path_never_escapes(tool: Tool, planted: Path) -> None:
    """Call with Windows paths: on POSIX a drive or a share is outside; after a slash it is an ordinary name."""
    with Workspace(str(planted), approve="auto") as workspace:
        for path, params in tool_scenarios.path_scenarios(tool, planted, tool_scenarios.WINDOWS_PATHS):
            result = workspace.call(tool.dialect, tool.name, params)
            if path.startswith("/"):
                assert result.error is None or result.error.code not in OUTSIDE_CODES, (path, result)
            else:
                assert result.error is not None, (path, result)
                codes = OUTSIDE_CODES | ({"invalid_parameters"} if tool.dialect in ABSOLUTE_ONLY else set())
                assert result.error.code in codes, (path, result)
    assert not any("Windows" in each.name or "server" in each.name for each in planted.rglob("*"))


@pytest.mark.parametrize("tool", WITH_PATHS, ids=name_of)
def test_every_tool_odd_file_name_works(tool: Tool, planted: Path) -> None:
    """Call with odd names: a call that works with a plain name works with an odd one."""
    for field in sorted(tool.params.paths):
        (planted / "a.txt").write_text("one\n")  # an earlier call may have moved it
        plain = tool_scenarios.example_with(tool, field, planted)
        top = tool_scenarios.memory_of(planted) if tool.params.mount else planted
        given = Path(plain[field])
        there = top / given.relative_to(tool.params.mount) if tool.params.mount else planted / given
        exists, is_directory = there.exists(), there.is_dir()
        for odd_name in tool_scenarios.ODD_NAMES:
            name = f"{odd_name}{given.suffix}" if given.suffix == ".ipynb" else odd_name
            odd = top / f"odd-{field}" / name
            (planted / "a.txt").write_text("one\n")
            odd.parent.mkdir(exist_ok=True)
            if exists and is_directory:
                odd.mkdir()
                (odd / "b.py").write_text("one\n")
            elif exists:
                odd.write_bytes(there.read_bytes())
            tool_scenarios.memory_of(planted)
            path = str(odd.relative_to(top))
            if given.is_absolute():
                path = f"{tool.params.mount or planted}/{path}"
            with Workspace(str(planted), approve="auto") as workspace:
                tool_scenarios.prepare(workspace, tool, {**plain, field: path})
                result = workspace.call(tool.dialect, tool.name, {**plain, field: path})
            assert result.success, (name, result)
            json.dumps(result.to_dict()).encode()


def test_every_tool_has_ten_cases_and_every_scenario_kind() -> None:
    """Fail with the name of each tool and the kinds that it lacks."""
    counted, missing = tool_scenarios.contract_kinds(), dict[str, list[str]]()
    root = Path("/root-of-the-count")
    for tool in TOOLS:
        has = counted.get((tool.dialect, tool.name), dict.fromkeys((*tool_scenarios.KINDS, "all"), 0))
        declared = {
            tool_scenarios.PARAMETERS: len(list(tool_scenarios.wrong_parameters(tool, root))),
            tool_scenarios.OUTSIDE: len(list(tool_scenarios.path_scenarios(tool, root, tool_scenarios.OUTSIDE_PATHS))),
            tool_scenarios.SYSTEMS: len(list(tool_scenarios.path_scenarios(tool, root, tool_scenarios.WINDOWS_PATHS))),
            tool_scenarios.SPECIAL: len(list(tool_scenarios.path_scenarios(tool, root, tool_scenarios.ODD_NAMES))),
        }
        kinds = [kind for kind in tool_scenarios.KINDS if tool.params.paths or kind not in tool_scenarios.NEED_A_PATH]
        elsewhere = tool_scenarios.ELSEWHERE.get((tool.dialect, tool.name), {})
        assert all((Path(__file__).parent.parent / test).exists() for test in elsewhere.values())
        lacks = [kind for kind in kinds if not (has[kind] or declared.get(kind) or kind in elsewhere)]
        if has["all"] < tool_scenarios.FEWEST:
            lacks.append(f"only {has['all']} cases in its contract")
        if lacks:
            missing[name_of(tool)] = lacks
    assert missing == {}
    assert {name_of(tool) for tool in TOOLS} == {
        f"{dialect}.{tool}" for dialect, examples in tool_scenarios.EXAMPLES.items() for tool in examples
    }


def test_run_coverage_low_file_or_tool_is_named_with_lines() -> None:
    """Check what `make coverage` does with the report: it names a tool or file below the floor, with lines."""
    tools = run_coverage.functions_of_tools()
    assert len(tools) == len(TOOLS)
    where = {file for file, _ in tools.values()}
    assert "src/handrail/dialects/copilot.py" in where
    files = {
        file: {
            "summary": {"percent_covered": 100.0},
            "missing_lines": [],
            "functions": {
                name: {"summary": {"percent_covered": 100.0}, "missing_lines": []}
                for each, name in tools.values()
                if each == file
            },
        }
        for file in where
    }
    assert run_coverage.below_the_floor(files) == []
    copilot: Any = files["src/handrail/dialects/copilot.py"]
    copilot["functions"]["list_dir"] = {"summary": {"percent_covered": 90.0}, "missing_lines": [7]}
    del copilot["functions"]["create_file"]
    copilot["summary"]["percent_covered"], copilot["missing_lines"] = 94.9, [7, 8]
    assert run_coverage.below_the_floor(files) == [
        "src/handrail/dialects/copilot.py: 94.9 %, missing [7, 8]",
        "copilot.create_file: not in the report",
        "copilot.list_dir: 90.0 %, missing [7]",
    ]


@pytest.mark.parametrize("tool", TOOLS, ids=name_of)
def test_every_parameter_occurs_in_a_case(tool: Tool) -> None:
    """A parameter that all tools of a dialect have needs one case in the dialect."""
    steps = [step for case in contract_cases.read_all() if case.dialect == tool.dialect for step in case.steps]
    others = [each.params.fields for each in TOOLS if each.dialect == tool.dialect and each is not tool]
    for name in tool.params.fields:
        everywhere = others and all(name in fields for fields in others)
        assert any(f'"{name}":' in step.params for step in steps if everywhere or step.tool == tool.name), name
