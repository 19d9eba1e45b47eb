"""Plays a case of a contract through the commands `run` and `call`, and through an MCP client."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import contract_cases
from support.command_line import Done
from support.contract_cases import Case, Step
from support.mcp_client import envelope

if TYPE_CHECKING:
    from mcp import Client

Command = Callable[..., Done]


def through_run(command: Command, case: Case, root: Path, *more: str) -> Done:
    requests = [
        {"tool": step.tool, "params": contract_cases.params_of(step, root), "id": number}
        for number, step in enumerate(case.steps)
    ]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    return command("run", *_flags(case, root), *more, stdin=lines)


def check_run(done: Done, case: Case, root: Path, files: Path | None = None) -> None:
    """Check the answers of all calls, and the files of the last one: all calls have run by now."""
    answers = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert [answer["id"] for answer in answers] == list(range(len(case.steps)))
    for number, (step, answer) in enumerate(zip(case.steps, answers, strict=True), 1):
        seen = [each for each in step.expected if number == len(answers) or each.kind not in contract_cases.AFTERWARDS]
        contract_cases.check(replace(step, expected=seen), answer, root, files)


def through_call(command: Command, case: Case, step: Step, root: Path, *more: str) -> Done:
    params = json.dumps(contract_cases.params_of(step, root))
    return command("call", step.tool, "-", "--json", *_flags(case, root), *more, stdin=params)


def check_call(done: Done, step: Step, root: Path, files: Path | None = None) -> None:
    """Check the answer of one call, its files and its exit status."""
    answer: dict[str, Any] = json.loads(done.stdout)
    contract_cases.check(step, answer, root, files)
    timed_out = isinstance(answer["output"], dict) and answer["output"].get("timeout")
    code = answer.get("error", {}).get("code", "timeout" if timed_out else "")
    assert done.returncode == ({"approval_denied": 3, "timeout": 124}.get(code, 1) if code else 0)


async def over_mcp(
    client: "Client", case: Case, root: Path, named: dict[str, str] | None = None, files: Path | None = None
) -> None:
    """Play a case; `named` are more arguments of each call."""
    for step in case.steps:
        params = contract_cases.params_of(step, root)
        if not isinstance(params, dict) or not _is_text(params):
            return  # MCP arguments must be an object, and the messages are UTF-8
        result = await client.call_tool(step.tool, (named or {}) | params)
        contract_cases.check(step, envelope(result), root, files)


def _is_text(params: dict[str, Any]) -> bool:
    try:
        json.dumps(params, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _flags(case: Case, root: Path) -> list[str]:
    flags = [
        part
        for key, value in case.settings.items()
        for part in ([contract_cases.FLAGS[key]] if value is True else [contract_cases.FLAGS[key], value])
    ]
    return ["--dialect", case.dialect, "--root", str(root), *flags]
