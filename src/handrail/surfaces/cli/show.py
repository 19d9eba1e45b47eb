"""Implements `handrail show N`: prints one journal entry as a diff."""

import time
from collections.abc import Iterator

import click

from handrail.kernel.journal.journal import HistoryEntry, JournalEntry, Origin, open_journal
from handrail.ops.text.display import one_line, visible
from handrail.runtime.entry_facts import approver_of, entry_diff, facts
from handrail.surfaces.cli.history import counts
from handrail.surfaces.cli.light.find_workspace import root_errors
from handrail.surfaces.cli.light_options import echo_json, journal_errors, json_option, root_option


@click.command("show")
@click.argument("n", type=int)
@root_option
@json_option
def command(n: int, root: str, as_json: bool) -> None:
    """Show the changes of history entry N."""
    with root_errors(root):
        _, journal = open_journal(root)
    with journal_errors():
        entry = journal.entry(n)
        if entry is not None and entry.origin.amends is not None:
            n = entry.origin.amends
            entry = journal.entry(n)
    if entry is None:
        raise click.UsageError(f"entry {n} not found in the history, or damaged")
    diff = entry_diff(journal, entry)
    if as_json:
        (listed,) = (each for each in journal.listed() if isinstance(each, HistoryEntry) and each.n == n)
        echo_json(facts(listed) | {"diff": diff}, indent=2)
        return
    for line in _head(entry):
        click.echo(line)
    click.echo(visible(diff), nl=False)


def _head(entry: JournalEntry) -> Iterator[str]:
    origin = entry.origin
    yield f"{entry.n}  {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(entry.time))}  {counts(entry)}"
    yield f"{origin.kind} by {_caller(origin)}"
    yield f"approved by {approver_of(origin) or 'unknown'}"
    if origin.about and origin.session:
        yield f"command: {one_line(origin.about)}"
    if origin.undoes:
        yield f"undoes: {', '.join(map(str, origin.undoes))}"
    if entry.note:
        yield f"note: {entry.note}"
    yield ""


def _caller(origin: Origin) -> str:
    """Return who made a change; a command of the user such as `handrail config` has no session."""
    if not origin.session:
        return one_line(origin.about) or "unknown"
    caller = " ".join(part for part in (origin.dialect, origin.tool) if part)
    return f"{caller or 'unknown'} (session {origin.session}, call {origin.call})"
