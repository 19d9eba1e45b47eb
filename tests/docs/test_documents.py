"""Tests the documents: snippets run, names exist, and every command, setting, limit and code is listed."""

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import click
import pytest
from support.command_line import at_terminal, handrail
from support.documents import HOME, NAMED, fences, names, prose, section, table, text

from handrail import Workspace
from handrail.dialects import NAMES, load
from handrail.kernel.sandbox.view.visible_paths import KEPT_VARIABLES
from handrail.model.effects import Effect
from handrail.model.files import Put
from handrail.model.limits import GIB, KIB, MAY_BE_LOWERED, MIB, Limits
from handrail.runtime.call import Call
from handrail.settings import Settings
from handrail.surfaces.cli.click_commands import main
from handrail.tools.common_messages import COMMON
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect

SOURCE = HOME / "src" / "handrail"
SOURCES = "".join(path.read_text() for path in sorted(SOURCE.rglob("*.py")))

# ── snippets ──

PROGRAMS = [(page, n) for page in NAMED for n in range(len(fences(page, "python")))]
NEEDS_MORE = "# each needs its package"
"""Programs with this comment are tested by `make test-adapters`."""


@pytest.mark.parametrize(("page", "n"), PROGRAMS)
def test_documented_program_runs(page: str, n: int, root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    code = fences(page, "python")[n].replace("/path/to/project", str(root))
    code = code.replace("/path/to", str(tmp_path_factory.mktemp("path")))
    compiled = compile(code, page, "exec")
    (root / "README.md").write_text("hello\n")
    if NEEDS_MORE not in code:
        exec(compiled, stand_ins())


def stand_ins() -> dict[str, Any]:
    """Return the names that snippets use: a conversation with a model, and the imports of a dialect's module."""
    chat = {"id": "1", "type": "function", "function": {"name": "list_dir", "arguments": "{}"}}
    use = SimpleNamespace(type="tool_use", id="1", name="list_dir", input={})
    part = SimpleNamespace(function_call={"name": "list_dir", "args": {}})
    return {
        "messages": [],
        "completion": SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(tool_calls=[chat]))]),
        "message": SimpleNamespace(content=[use]),
        "candidate": SimpleNamespace(content=SimpleNamespace(parts=[part])),
        "dialect": Dialect("mine"),
        "Any": Any,
        "field": field,
    } | {each.__name__: each for each in (Call, Effect, Params, Put)}


def command_lines(page: str) -> Iterator[list[str]]:
    for block in fences(page, "sh", "console"):
        for alone, within in re.findall(
            r"^(?:\$ |.*\| |.* -- )?(handrail .+)$|\$\((handrail [^)]+)\)", block, re.MULTILINE
        ):
            yield shlex.split(alone or within, comments=True)[1:]


@pytest.mark.parametrize("page", [page for page in NAMED if [*command_lines(page)]])
def test_documented_command_line_parses(page: str) -> None:
    for words in command_lines(page):
        context = click.Context(main)
        name, command, rest = main.resolve_command(context, words)
        while isinstance(command, click.Group):
            name, command, rest = command.resolve_command(context, rest)
        assert command is not None, words
        command.make_context(name, rest, parent=context).close()


@pytest.mark.parametrize("page", NAMED)
def test_documented_inline_command_has_its_options(page: str) -> None:
    for found in re.findall(r"`(?:[\w ]+ -- )?handrail ([^`]+)`", prose(page)):
        command: click.Command | None = main
        for word in found.split():
            if isinstance(command, click.Group) and re.fullmatch("[a-z]+", word):
                command = command.get_command(click.Context(main), word)
                assert command is not None, found
            elif word.startswith("--") and command is not None:
                assert word in {name for each in command.params for name in each.opts}, found


def test_documented_console_session_prints_as_shown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setenv("HANDRAIL_APPROVE", "auto")
    monkeypatch.setenv("HANDRAIL_SANDBOX", "off")
    numbers = "".join(f"{n}\n" for n in range(1, 6))
    with Workspace(str(root)) as workspace:
        for dialect, tool, params in (
            ("file", "file.write", {"path": "src/a.txt", "content": numbers}),
            ("file", "file.patch", {"path": "src/a.txt", "patches": [{"find": "2", "replace": "two"}]}),
            ("codex", "shell", {"command": "mkdir x; mv src/a.txt x/b.txt"}),
        ):
            assert workspace.call(dialect, tool, params).success
    for page in ("docs/undo.md", "docs/approvals.md"):
        for shown in "".join(fences(page, "console")).split("$ handrail ")[1:]:
            line, _, expected = shown.partition("\n")
            done = at_terminal(*shlex.split(line, comments=True))
            assert done.returncode == 0, (line, done.stderr)
            assert not expected or timeless(done.stdout) == timeless(expected)


def timeless(listing: str) -> str:
    """Remove everything that differs between machines."""
    placeless = re.sub(r"(?m)^  in \S+/", "  in PLACE/", listing)
    return re.sub(r".*█.*|\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", placeless)


# ── names ──


@pytest.mark.parametrize("dialect", NAMES)
def test_dialect_page_lists_every_tool(dialect: str) -> None:
    tools = sorted(load(dialect).tools)
    column = 1 if dialect == "context" else 0
    listed = table(text(f"docs/dialects/{dialect}.md"))
    assert sorted(name for row in listed for name in names(row[column])) == tools
    if column == 0:
        asking = {name: row[2] == "yes" for row in listed for name in names(row[0])}
        assert asking == {name: tool.requires_approval for name, tool in load(dialect).tools.items()}


def test_readme_dialects_have_right_tool_counts() -> None:
    listed = {names(row[0])[0]: int(row[2]) for row in table(section("README.md", "The dialects"))}
    assert listed == {name: len(load(name).tools) for name in NAMES}


def test_readme_fits_three_screens() -> None:
    lines = text("README.md").splitlines()
    assert sum(-(-max(1, len(line)) // 100) for line in lines) <= 130


def test_command_line_page_lists_every_command() -> None:
    listed = [name for row in table(text("docs/command-line.md")) for name in names(row[0])]
    assert sorted(listed) == sorted(main.list_commands(click.Context(main)))


def test_settings_page_lists_every_setting() -> None:
    listed = {name for row in table(text("docs/settings.md")) for name in names(row[0])}
    assert listed == {*Settings._fields} - {"rules", "limits"} | {"[limits]"}


def test_limits_page_lists_every_limit_with_default() -> None:
    units = {"KiB": KIB, "MiB": MIB, "GiB": GIB}
    listed = {}
    for name, default, what, lowered in table(text("docs/limits.md")):
        number, unit = re.fullmatch(r"([\d. ]+?)(?: (\wiB))?", default).groups()  # type: ignore[union-attr]
        listed[name.strip("`")] = float(number.replace(" ", "")) * units.get(unit, 1)
        assert what.endswith(".")
        assert (lowered == "yes") is (name.strip("`") in MAY_BE_LOWERED)
    assert listed == Limits()._asdict()


@pytest.mark.parametrize("page", NAMED)
def test_documented_limit_names_exist(page: str) -> None:
    for listed in re.findall(r"`\[limits\]`\s+with ([^.]+)\.", text(page)):
        assert {*names(listed)} <= {*Limits._fields}


def test_settings_page_lists_every_variable() -> None:
    read = {*re.findall(r'environ\.get\(\s*"(\w+)"', SOURCES), *re.findall(r'"((?:HANDRAIL|XDG)_[A-Z_]+)"', SOURCES)}
    assert {*re.findall(r"`([A-Z_]+[A-Z])`", section("docs/settings.md", "Variables"))} == read
    settable = {f"HANDRAIL_{name.upper()}" for name in Settings._fields}
    named = {name for page in NAMED for name in re.findall(r"HANDRAIL_[A-Z_]*[A-Z]", text(page))}
    assert named <= settable | read
    assert all(name in text("docs/sandbox.md") for name in KEPT_VARIABLES)


def test_results_page_lists_every_error_code() -> None:
    tables = [COMMON, *(load(name).words for name in NAMES)]
    codes = {say.code for words in tables for say in words.values()} - {"note"}
    codes |= {*re.findall(r'ToolError\(\s*"(\w+)"', SOURCES), *re.findall(r'"code": "(\w+)"', SOURCES)}
    listed = [name for row in table(section("docs/results.md", "Error codes")) for name in names(row[0])]
    assert sorted(listed) == sorted(codes)
    patches = table(section("docs/patches.md", "What is refused, with nothing touched"))
    assert {name for row in patches for name in names(row[1])} <= codes


@pytest.mark.parametrize("row", table(section("docs/results.md", "Exit codes")), ids=lambda row: row[0])
def test_documented_exit_code_example_ends_with_it(row: list[str], root: Path) -> None:
    code, _, example = row
    for line in names(example):
        done = handrail(*shlex.split(line)[1:], cwd=root)
        assert done.returncode == int(code), done


def test_results_page_lists_every_exit_code() -> None:
    codes = {*re.findall(r"SystemExit\((?:.*?)(\d+)", SOURCES), *re.findall(r"EXIT = .*?(\d+).*?(\d+)", SOURCES)[0]}
    assert {row[0] for row in table(section("docs/results.md", "Exit codes"))} == codes | {"0", "2", "20 to 24"}


@pytest.mark.parametrize("page", NAMED)
def test_documented_links_and_anchors_exist(page: str) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]+))?\)", prose(page)):
        there = ((HOME / page).parent / target).resolve() if target else HOME / page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there.read_text()), (target, anchor)


def anchors(markdown: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", markdown, re.MULTILINE)
    slugs = (re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)
    return {*slugs, *re.findall(r'<a id="([^"]+)">', markdown)}


NOT_KEPT = ("bench/out", "src/handrail/dialects/NAME.py", "contracts/NAME.md", "tools/call")
"""Names that look like files of the repository: made later, examples, and a method of MCP."""


@pytest.mark.parametrize("page", NAMED)
def test_documented_files_and_tests_exist(page: str) -> None:
    here = "tests|bench|docs|contracts|packaging|src|model|ops|kernel|policy|runtime|tools|dialects|surfaces"
    for name, test in re.findall(rf"`((?:{here})/[\w./*-]*|test_\w+\.py)(?:::(\w+))?`", prose(page)):
        found = [*HOME.glob(name), *SOURCE.glob(name), *HOME.glob(f"tests/*/{name}")]
        assert found or name in NOT_KEPT, name
        assert not test or f"def {test}(" in found[0].read_text(), (name, test)


# ── the tour of the house ──


def modules(markdown: str) -> list[str]:
    return re.findall(r"`((?:\w+/)*\w+\.py)`", markdown)


def test_tour_has_twenty_tasks_and_every_file_exists() -> None:
    rows = table(section("CONTRIBUTING.md", "A tour of the house"))
    assert len(rows) == 20
    assert all(modules(place) for _, place in rows)
    assert [name for _, place in rows for name in modules(place) if not (SOURCE / name).is_file()] == []


def test_architecture_names_only_modules_that_exist() -> None:
    page = text("docs/architecture.md")
    missing = []
    for paragraph in re.split(r"\n(?=- \*\*`)|\n\n", page):
        room = re.match(r"- \*\*`(kernel/\w+/)`", paragraph)
        places = [SOURCE, *([SOURCE / room[1], *SOURCE.glob(f"{room[1]}*/")] if room else [])]
        missing += [name for name in modules(paragraph) if not any((place / name).is_file() for place in places)]
    assert missing == []


@pytest.mark.parametrize(
    ("contract", "heading"), [("layers", "The rooms"), ("library", "The library"), ("kernel", "The kernel")]
)
def test_architecture_rooms_equal_the_layers_of_the_import_linter(contract: str, heading: str) -> None:
    linter = ConfigParser()
    linter.read(HOME / ".importlinter")
    layers = linter[f"importlinter:contract:{contract}"]["layers"].split("\n")
    expected = [re.findall(r"(\w+)(?= |$)", layer) for layer in layers if layer]
    listed = [names(row[0]) for row in table(section("docs/architecture.md", heading))]
    assert [[re.sub(r"/$|\.py$", "", name) for name in row] for row in listed] == expected


def test_architecture_names_the_files_that_a_call_enters(root: Path) -> None:
    (root / "a.py").write_text("x = 1\n")
    with Workspace(str(root), approve="auto") as workspace:
        tools = workspace.tools("file")

        def read() -> Any:
            return tools.call("file.read", {"path": "a.py"})

        def patch(n: int) -> Any:
            return tools.call("file.patch", {"path": "a.py", "patches": [{"find": f"{n}", "replace": f"{n + 1}"}]})

        assert read().success
        assert patch(1).success
        entered = {"file.read": entered_files(read), "file.patch": entered_files(lambda: patch(2))}
    page = section("docs/architecture.md", "The files that one call enters")
    listed = {tool: int(count) for tool, count in re.findall(r"`(file\.\w+)` enters \*\*(\d+)\*\* files", page)}
    assert listed == {tool: len(files) for tool, files in entered.items()}
    assert {name for row in table(page) for name in modules(row[1])} == entered["file.patch"]
    assert entered["file.read"] <= {*modules(page)}


def entered_files(call: Callable[[], Any]) -> set[str]:
    """Return the modules of Handrail in which this thread runs a function during a call, imports left out."""
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(f"{SOURCE}/") and frame.f_code.co_name != "<module>":
            entered.add(name.removeprefix(f"{SOURCE}/"))

    sys.setprofile(note)
    try:
        result = call()
    finally:
        sys.setprofile(None)
    assert result.success
    return entered


def test_threat_model_rows_name_a_test() -> None:
    rows = [line for line in text("docs/threat-model.md").split("\n") if line.startswith("|") and "---" not in line]
    assert [row for row in rows if "::test_" not in row] == [row for row in rows if "| shown by |" in row]
    assert len(rows) > 50


def test_site_navigation_has_every_page() -> None:
    listed = re.findall(r"[\w./-]+\.md\b", text("mkdocs.yml").partition("\nnav:\n")[2].partition("\nvalidation:\n")[0])
    contracts = [str(page.relative_to(HOME)) for page in HOME.glob("contracts/**/*.md")]
    assert sorted(listed) == sorted({*NAMED, *contracts, "CHANGELOG.md"})
