"""Implements `handrail replay LOG --root DIR`: repeats the calls of a session log."""

import json
from collections import Counter
from typing import Any

import click

from handrail.kernel.host.scratch import CopyTooLarge, scratch_copy
from handrail.kernel.host.state_dir import read_some
from handrail.model.approval import Verdict
from handrail.model.limits import Limits
from handrail.ops.text.display import one_line
from handrail.replay import ReplayOutcome, read_log
from handrail.replay import replay as replay_log
from handrail.surfaces.cli.light.open_workspace import usage_errors
from handrail.surfaces.cli.light_options import json_option, root_option
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.cli.terminal_access import terminal_approver

_SUMMARIES = {
    "same": "{} same",
    "differs": "{} different",
    "unknown": "{} without an answer in the log (log_level = debug records answers)",
    "shortened": "{} not compared: the log has only a part of the answer",
    "skipped": "{} skipped: the log has only a part of the call",
}


@click.command("replay")
@click.argument("log", type=click.Path(exists=True, dir_okay=False))
@root_option
@click.option("--approve", type=click.Choice(["ask", "auto"]), default="ask", help="Who approves commands and fetches.")
@json_option
def command(log: str, root: str, approve: str, as_json: bool) -> None:
    """Repeat the calls of a session LOG on a copy of the workspace, as it was before the session; list what differs.

    Times and process ids are not compared. DIR itself is not changed.
    """
    try:
        found = read_log(read_some(log, Limits().replay_log_bytes))
    except UnicodeDecodeError:
        raise click.UsageError(f"{log} is not a session log: it is not text") from None
    except OSError as error:
        raise click.UsageError(f"cannot read {log}: {error.strerror}") from None
    if not found.calls:
        raise click.UsageError(f"{log} contains no calls")
    approver = (lambda _: Verdict(True, "policy auto")) if approve == "auto" else terminal_approver()
    try:
        with usage_errors(root), scratch_copy(root, Limits().replay_bytes) as copy:
            outcomes = list(replay_log(found, copy, approver))
    except CopyTooLarge as error:
        raise click.UsageError(f"cannot copy {root}: {error}") from None
    if as_json:
        echo_json({"calls": [_facts(each) for each in outcomes], "unread_lines": found.unread}, indent=2)
    else:
        _show(outcomes, found.unread)
    raise SystemExit(1 if any(each.what == "differs" for each in outcomes) else 0)


def _show(outcomes: list[ReplayOutcome], unread: int) -> None:
    for each in outcomes:
        for where, logged, got in each.differences:
            click.echo(f"{each.call.number}. {each.call.tool}: {where}")
            click.echo(f"  - {one_line(json.dumps(logged, ensure_ascii=False), 500)}")
            click.echo(f"  + {one_line(json.dumps(got, ensure_ascii=False), 500)}")
    counts = Counter(each.what for each in outcomes)
    click.echo(
        f"{len(outcomes)} calls: "
        + ", ".join(text.format(counts[what]) for what, text in _SUMMARIES.items() if counts[what])
    )
    if unread:
        click.echo(f"cannot read {unread} lines of the log")


def _facts(outcome: ReplayOutcome) -> dict[str, Any]:
    found = [{"where": where, "then": logged, "now": got} for where, logged, got in outcome.differences]
    call = outcome.call
    known = {"call": call.number, "session": call.session, "dialect": call.dialect, "tool": call.tool}
    return known | {"result": outcome.what} | ({"differences": found} if found else {})
