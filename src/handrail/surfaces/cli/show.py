"""Implements `handrail show N`: prints one journal entry as a diff."""

import time
from collections.abc import Iterator

import click

from handrail.kernel.journal.blobs import BlobLost
from handrail.kernel.journal.journal import ChangedPath, HistoryEntry, Journal, JournalEntry, KeptNode, open_journal
from handrail.model.paths import quote
from handrail.ops.text.display import one_line, visible
from handrail.ops.text.unified_diff import unified
from handrail.surfaces.cli.history import approver_of, counts, facts
from handrail.surfaces.cli.light_options import echo_json, journal_errors, json_option, root_errors, root_option


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
    if entry is None:
        raise click.UsageError(f"entry {n} not found in the history, or damaged")
    diff = "".join(file_diff(journal, file) for file in entry.files)
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
    caller = " ".join(part for part in (origin.dialect, origin.tool) if part)
    yield f"{origin.kind} by {caller or 'unknown'} (session {origin.session}, call {origin.call})"
    yield f"approved by {approver_of(origin) or 'unknown'}"
    if origin.about:
        yield f"command: {one_line(origin.about)}"
    if origin.undoes:
        yield f"undoes: {', '.join(map(str, origin.undoes))}"
    if entry.note:
        yield f"note: {entry.note}"
    yield ""


def file_diff(journal: Journal, file: ChangedPath) -> str:
    """Return the change of one path as a diff, or as a line if it has no text to compare."""
    before, after = file.before, file.after
    if not (_is_file(before) and _is_file(after)):
        return (_line(file.path, "deleted", before) if before else "") + (
            _line(file.path, "new", after) if after else ""
        )
    try:
        old, new = _content(journal, before), _content(journal, after)
    except BlobLost as error:
        return f"{quote(file.path)}: {error}\n"
    if any(node is not None and not node.kept for node in (before, after)):
        return f"{quote(file.path)}: the content was not recorded\n"
    if b"\0" in (old or b"") + (new or b""):
        return f"{quote(file.path)}: binary, {len(old or b'')} -> {len(new or b'')} bytes\n"
    old_mode, new_mode = (node.mode if node else None for node in (before, after))
    return unified(file.path, old, new, old_mode=old_mode, new_mode=new_mode, exact=True)


def _is_file(node: KeptNode | None) -> bool:
    return node is None or node.kind == "file"


def _content(journal: Journal, node: KeptNode | None) -> bytes | None:
    """Return the content of a file; None if there was no file, empty if its content was not recorded."""
    if node is None:
        return None
    return journal.blobs.get(node.kept) if node.kept else b""


def _line(path: str, verb: str, node: KeptNode) -> str:
    target = f" -> {quote(node.kept)}" if node.kind == "link" else ""
    return f"{verb} {node.kind} {quote(path)}{target}\n"
