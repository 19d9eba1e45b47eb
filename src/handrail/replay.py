"""Replays a session log on a copy of the tree that it began with, and reports where the results differ."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.dialects import NAMES
from handrail.kernel.host.session_log import only_log
from handrail.model.approval import Approver, Question, Verdict
from handrail.model.effects import Effect
from handrail.model.record import record
from handrail.ops.toml_read import levels
from handrail.policy.policy import no_approver
from handrail.workspace import Workspace, internals

if TYPE_CHECKING:
    from handrail.library.client_session import ClientSession

_VARYING = re.compile(r"(^|_)(ms|time|at|seconds|duration|mtime|modified|pid|pgid)$")

_SESSION = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b")

_PROCESS = re.compile(r"\b(PIDs?|PGID|pid):? \(?[\d, ]*\d\)?")

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")

_ROOT = "<root>"
_ROOTS = 100


@record
class Logged:
    """Holds one call as the log has it."""

    session: str
    number: int
    dialect: str
    tool: str
    params: Any
    whole: bool
    """True if nothing in it was cut or hidden."""
    answer: dict[str, Any] | None = None
    answer_whole: bool = True

    @property
    def denied(self) -> bool:
        return _is_denial(self.answer)


@record
class Log:
    roots: list[str] = field(default_factory=list)
    calls: list[Logged] = field(default_factory=list)
    unread: int = 0
    """The number of lines that are not part of a log."""


class ReplayOutcome(NamedTuple):
    """Holds the outcome of one call: `same`, `differs`, `unknown` (no result in the log), `shortened` or `skipped`."""

    call: Logged
    what: str
    differences: tuple[tuple[str, Any, Any], ...] = ()


def read_log(text: str) -> Log:
    log, open_calls = Log(), dict[tuple[str, int], Logged]()
    for line in text.split("\n"):
        if line:
            try:
                found = json.loads(line)
                for _ in levels(found):
                    pass
                _take(log, open_calls, found)
            except (ValueError, KeyError, TypeError, RecursionError):
                log.unread += 1
    return log


def _take(log: Log, open_calls: dict[tuple[str, int], Logged], line: Any) -> None:
    """Add one line to the log. Raises KeyError or TypeError for an invalid line, and leaves the log as it is."""
    about = _Line(line)
    if about("event", str) == "request":
        session, dialect, tool = (about(name, str) for name in ("session", "dialect", "tool"))
        call = Logged(session, about("call", int), dialect, tool, about("params", object), about.whole)
        if "root" in line:
            _add_root(log.roots, about("root", str))
        open_calls[call.session, call.number] = call
        log.calls.append(call)
    elif line["event"] == "response":
        call = open_calls[about("session", str), about("call", int)]
        call.answer, call.answer_whole = about("result", dict), about.whole


class _Line:
    """Reads the fields of a line, which may hold anything."""

    def __init__(self, line: Any) -> None:
        self._fields = line if isinstance(line, dict) else {}
        self.whole = not self._fields.get("shortened", False)

    def __call__(self, name: str, kind: type) -> Any:
        value = self._fields[name]
        if not isinstance(value, kind):
            raise TypeError(name)
        return value


def _add_root(roots: list[str], root: str) -> None:
    """Note a directory that results name. A log with hundreds of them was not written by Handrail."""
    if root not in roots:
        if len(root) <= 1 or len(roots) == _ROOTS:
            raise TypeError(root)
        roots.append(root)


def replay(log: Log, root: str, approver: Approver | None, **flags: Any) -> Iterator[ReplayOutcome]:
    """Repeat the calls of the log in `root`, and change files there without asking.

    Asks `approver` about commands and fetches. Refuses calls that the log shows as refused.
    """
    answering = _Answering(approver)
    with Workspace(root, approve="ask", approver=answering, tell=only_log, hooks={}, **flags) as workspace:
        sessions: dict[str, ClientSession] = {}
        places = {workspace.root: _ROOT, internals(workspace).services.state.path: "<state>"}
        recorded_places = dict.fromkeys(sorted(log.roots, key=len, reverse=True), _ROOT)
        moves = dict.fromkeys(recorded_places, workspace.root)
        last = {call.session: index for index, call in enumerate(log.calls)}
        for index, call in enumerate(log.calls):
            if call.session not in sessions:
                sessions[call.session] = workspace.session(approver=answering)
            if not call.whole or call.dialect not in NAMES:
                yield ReplayOutcome(call, "skipped")
            else:
                answering.call = call
                params = _moved(call.params, moves)
                got = sessions[call.session].tools(call.dialect).call(call.tool, params).to_dict()
                yield _judged(call, comparable(got, places), comparable(call.answer, recorded_places))
            if index == last[call.session]:
                sessions.pop(call.session).close()


def _judged(call: Logged, got: dict[str, Any], logged: dict[str, Any] | None) -> ReplayOutcome:
    if logged is None:
        return ReplayOutcome(call, "unknown")
    if not call.answer_whole:
        return ReplayOutcome(call, "shortened")
    if call.denied and _is_denial(got):
        return ReplayOutcome(call, "same")  # the reason names who denied the call, which differs now
    found = tuple(differences(logged, got))
    return ReplayOutcome(call, "differs", found) if found else ReplayOutcome(call, "same")


def _is_denial(answer: dict[str, Any] | None) -> bool:
    error = answer.get("error") if answer else None
    return isinstance(error, dict) and error.get("code") == "approval_denied"


def _moved(value: Any, moves: dict[str, str]) -> Any:
    """Return the parameters with the root of the log replaced by the new one."""
    if isinstance(value, str):
        return replaced(value, moves)
    if isinstance(value, dict):
        return {key: _moved(each, moves) for key, each in value.items()}
    return [_moved(each, moves) for each in value] if isinstance(value, list) else value


class _Answering:
    def __init__(self, approver: Approver | None) -> None:
        self.call: Logged | None = None
        self._approver = approver

    def __call__(self, question: Question) -> Verdict:
        if self.call is not None and self.call.denied:
            return Verdict(False, "log", reason="it was refused then", remedy="Nothing to do: the log says so")
        if not question.effects & (Effect.RUN | Effect.FETCH):
            return Verdict(True, "log")
        if self._approver is None:
            return no_approver(question)
        return self._approver(question)


def comparable(value: Any, places: Mapping[str, str], key: str = "") -> Any:
    """Return a result without times, process ids and directories; `places` maps directories to names for both sides."""
    if isinstance(value, dict):
        return {name: comparable(each, places, name) for name, each in value.items()}
    if isinstance(value, list):
        return [comparable(each, places) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool) and _VARYING.search(key):
        return 0
    if not isinstance(value, str):
        return value
    value = _SESSION.sub("<session>", _MOMENT.sub("<time>", replaced(value, places)))
    return _PROCESS.sub(lambda match: f"{match[1]}: <process>", value)


def replaced(text: str, names: Mapping[str, str]) -> str:
    """Replace names by others in one pass, so that replacements stay as they are. The first name that fits wins."""
    return re.sub("|".join(map(re.escape, names)), lambda match: names[match[0]], text) if names else text


def differences(logged: Any, got: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield where two results differ: path, value in the log, value now."""
    if isinstance(logged, dict) and isinstance(got, dict):
        for key in [*logged, *(key for key in got if key not in logged)]:
            yield from differences(logged.get(key), got.get(key), f"{where}.{key}" if where else str(key))
    elif isinstance(logged, list) and isinstance(got, list) and len(logged) == len(got):
        for number, (one, two) in enumerate(zip(logged, got, strict=True)):
            yield from differences(one, two, f"{where}[{number}]")
    elif logged != got:
        yield where, logged, got
