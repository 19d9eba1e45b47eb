"""Implements `handrail history`: lists recorded changes, and whether each was undone."""

import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from handrail.kernel.host.state_dir import State
from handrail.kernel.journal.journal import Damage, HistoryEntry, Journal, JournalEntry, open_journal
from handrail.kernel.journal.unkept import load_unkept
from handrail.model.limits import Limits
from handrail.model.paths import quote
from handrail.ops.text.display import one_line
from handrail.runtime.entry_facts import facts
from handrail.runtime.undo_marks import MARK
from handrail.surfaces.cli.light.find_workspace import root_errors
from handrail.surfaces.cli.light_options import echo_json, journal_errors, json_option, root_option
from handrail.surfaces.not_kept import cannot_restore

_BARS = "▁▂▃▄▅▆▇█"

_SHOWN = 50


@click.command("history")
@root_option
@json_option
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(1),
    default=_SHOWN,
    show_default=True,
    metavar="N",
    help="How many entries to list.",
)
@click.option("--session", metavar="S", help="List only the entries of session S.")
@click.option("--prune", is_flag=True, help="Delete entries that exceed --days or --megabytes.")
@click.option("--days", type=click.FloatRange(min=0), help="With --prune: keep the entries of the last DAYS days.")
@click.option("--megabytes", type=click.FloatRange(min=0), help="With --prune: keep at most this many megabytes.")
def command(
    root: str,
    as_json: bool,
    limit: int,
    session: str | None,
    prune: bool,
    days: float | None,
    megabytes: float | None,
) -> None:
    """List recorded changes, the newest first: calls, files, lines added and removed."""
    with root_errors(root):
        state, journal = open_journal(root)
    if state.warning:
        click.echo(f"handrail: {state.warning}", err=True)
    with journal_errors():
        if prune:
            _prune(state, journal, days, megabytes)
            return
        listed = list(islice(journal.listed(session), min(limit, sys.maxsize)))
    unkept = [quote(path) for path in load_unkept(state)]
    if as_json:
        entries = [facts(each) for each in listed if isinstance(each, HistoryEntry)]
        echo_json({"entries": entries, **_damage(listed), **({"cannot_restore": unkept} if unkept else {})})
        return
    for line in _lines(listed):
        click.echo(line)
    if unkept:
        click.echo(cannot_restore(unkept))


def _prune(state: State, journal: Journal, days: float | None, megabytes: float | None) -> None:
    from handrail.kernel.journal.prune import prune as prune_journal  # noqa: PLC0415  a list does not need it

    limits = Limits()
    most = limits.journal_bytes if megabytes is None else int(megabytes * 1_000_000)
    gone = prune_journal(state, journal, days=limits.journal_days if days is None else days, most_bytes=most)
    click.echo(f"Deleted {gone.entries} entries and {gone.blobs} file contents ({gone.bytes / 1e6:.1f} MB)")


def _lines(listed: list[HistoryEntry | Damage]) -> Iterator[str]:
    entries = [each for each in listed if isinstance(each, HistoryEntry)]
    if not listed:
        yield "No changes are recorded yet."
        return
    wide = len(str(max((entry.n for entry in entries), default=0)))
    for each in listed:
        yield _line(each, wide) if isinstance(each, HistoryEntry) else _damaged(each)
        if isinstance(each, HistoryEntry) and each.entry.note:
            yield f"{'':{wide}}  note: {one_line(each.entry.note)}"
    if entries:
        first, last = entries[-1].time, entries[0].time
        yield f"{'':{wide}}  {_moment(first)} {spark([entry.time for entry in entries])} {_moment(last)}"


def _line(listed: HistoryEntry, wide: int) -> str:
    entry, origin = listed.entry, listed.entry.origin
    named = [quote(file.path) for file in entry.files if (file.after or file.before or file)[0] != "directory"]
    command = origin.about if origin.session else ""  # without a session, the user's own command stands for the tool
    subject = one_line(command, 40) if command else ", ".join(named[:2]) or "(no files)"
    more = f" +{len(named) - 2} more" if len(named) > 2 and not command else ""
    undoes = f" {_numbers(origin.undoes)}" if origin.undoes else ""
    if origin.kind == MARK:
        return f"{entry.n:{wide}}  {_moment(entry.time)}  mark  {one_line(origin.about)}"
    tool = listed.tool if origin.session else one_line(origin.about) or listed.tool
    mark = "  (undone)" if listed.undone else ""
    line = f"{entry.n:{wide}}  {_moment(entry.time)}  {tool}{undoes}  {subject}{more}"
    return f"{line}  {len(named)} file{'s' * (len(named) != 1)}  {counts(entry)}{mark}"


def _numbers(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, sorted(numbers)[:5])) + (",…" if len(numbers) > 5 else "")


def counts(entry: JournalEntry) -> str:
    """Return the numbers of added and removed lines of an entry."""
    lines = [file.lines for file in entry.files if file.lines is not None]
    return f"+{sum(added for added, _ in lines)} -{sum(removed for _, removed in lines)}"


def _moment(moment: float) -> str:
    there = time.localtime(moment)
    today = there[:3] == time.localtime()[:3]
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M", there)


def _damaged(damage: Damage) -> str:
    return f"!  cannot read {damage.size} bytes of the journal from byte {damage.at}: they are damaged"


def _damage(listed: list[HistoryEntry | Damage]) -> dict[str, Any]:
    found = [{"at": each.at, "size": each.size} for each in listed if isinstance(each, Damage)]
    return {"damage": found} if found else {}


def spark(moments: list[float], width: int = 24) -> str:
    """Draw how many moments fall into each of `width` equal spans of time; a blank is a span without any."""
    if not moments:
        return ""
    first, last = min(moments), max(moments)
    counts = [0] * width
    for moment in moments:
        counts[min(width - 1, int((moment - first) / ((last - first) or 1) * width))] += 1
    most = max(counts)
    return "".join(_BARS[(count * len(_BARS) - 1) // most] if count else " " for count in counts)
