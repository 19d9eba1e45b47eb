"""Compares `gemini-3` with the tools of Gemini CLI in the package `@google/gemini-cli-core`."""

import re
from pathlib import Path
from typing import Any

import pytest
from references import cases_gemini_3, drive_gemini
from references.comparing import Answer, ReferenceCase, assert_exactly_listed, params_of, plain, planted, tree

from handrail import Workspace

CASES = cases_gemini_3.CASES
pytestmark = pytest.mark.skipif(
    not drive_gemini.INSTALLED, reason="gemini-cli-core is not installed; make test-references installs it"
)


def _handrail(case: ReferenceCase, root: Path) -> list[Answer]:
    """Make calls as the API sends them, and return what the model would read."""
    answers = []
    with Workspace(str(root), approve="auto", hints=False) as workspace:
        router = workspace.tools("gemini-3")
        for tool, params in case.calls:
            answered = router.call_gemini({"name": tool, "args": params_of(params, root)})["functionResponse"]
            response: dict[str, Any] = answered["response"]
            content = answered.get("parts") or response.get("error", response.get("output"))
            answers.append(Answer("error" in response, plain(content, root)))
    return answers


def _comparable(answers: list[Answer], root: Path) -> list[Answer]:
    """Return the answers without what differs from run to run."""
    return [
        each._replace(content=_stable(each.content, root)) if isinstance(each.content, str) else each
        for each in answers
    ]


def _stable(text: str, root: Path) -> str:
    """Leave out process groups, temporary directories and the order of files in a search, which ripgrep chooses."""
    text = re.sub(r"\nProcess Group PGID: \d+|(?<=\$ROOT) or .*", "", text).replace(str(root.parent), "$PARENT")
    head, mark, files = text.partition("\n---\nFile: ")
    return head + mark + "\n---\nFile: ".join(sorted(files.removesuffix("\n---").split("\n---\nFile: ")))


def test_gemini_3_differences_are_exactly_those_listed(tmp_path: Path) -> None:
    cases = [(case, planted(case, tmp_path / "reference" / f"{number}")) for number, case in enumerate(CASES)]
    references, _ = drive_gemini.gemini_tools(cases, tmp_path)
    found = {}
    for number, ((case, theirs), reference) in enumerate(zip(cases, references, strict=True)):
        ours = planted(case, tmp_path / "handrail" / f"{number}")
        answers = _comparable(reference, theirs), _comparable(_handrail(case, ours), ours)
        if answers[0] != answers[1] or tree(theirs) != tree(ours):
            found[case.name] = answers
    assert_exactly_listed(found, "gemini-3")


def test_gemini_3_declares_the_parameters_of_the_reference(tmp_path: Path) -> None:
    _, schemas = drive_gemini.gemini_tools([(ReferenceCase("none", {}, []), tmp_path)], tmp_path)
    with Workspace(str(tmp_path)) as workspace:
        exported = workspace.tools("gemini-3").gemini()["functionDeclarations"]
    ours = {each["name"]: _declared(each["parametersJsonSchema"]) for each in exported}
    assert ours == {each["name"]: _declared(each["parametersJsonSchema"]) for each in schemas}


def _declared(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what is declared for each parameter, without the differences that the contract page lists."""
    return {
        name: (
            *(each["type"], each.get("minimum") if name != "delay_ms" else 0, name in schema.get("required", ())),
            each["description"] if name not in ("respect_git_ignore", "useDefaultExcludes") else "",
        )
        for name, each in schema["properties"].items()
        if name not in ("file_filtering_options", "additional_permissions")
    }
