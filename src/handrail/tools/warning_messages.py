"""Words the warnings that accompany an answer, the same in every dialect."""

import shlex

from handrail.model.warnings import (
    AnswerCut,
    CellToolExists,
    CleanupFailed,
    DepthReached,
    FileSkipped,
    FilesLeftOut,
    GitArmed,
    GitIdentityMissing,
    GitNotSetAside,
    GitSetAside,
    GitUnseen,
    HiddenMatches,
    HiddenUnsearched,
    HookBroken,
    HookChanged,
    HookSaid,
    HostRefused,
    JournaledElsewhere,
    LinesCut,
    LinesUncounted,
    LongFile,
    MoreFilesSkipped,
    MorePages,
    NotAllTyped,
    NotJournaled,
    NotKept,
    NotRemembered,
    OutputCut,
    ProcessesEnded,
    ProcessesLeft,
    PromptNotRun,
    ProtectedInToolsOnly,
    RightsEnded,
    RootReplaced,
    RuleNotStored,
    SandboxDied,
    SandboxReduced,
    SandboxRefused,
    SandboxRestarted,
    ScanIncomplete,
    SearchIncomplete,
    UndoPartial,
)
from handrail.ops.text.display import size_text
from handrail.tools.messages import Facts, Message, Words

_SKIPPED = {
    "unreadable": "not readable",
    "abandoned": "the pattern took too long",
    "rules": "not a regular file, or too long for an ignore file",
}
_REFUSED = {
    "write_outside": "the sandbox blocks writes outside the workspace{where}; only the user can allow them",
    "guarded": "the sandbox blocks this change{where}: the user's own tools would run the file",
    "git_config": "the sandbox blocks changes of git's configuration{where}, because the user's own git runs programs "
    "that it names; pass a setting with git -c NAME=VALUE or in GIT_CONFIG_ variables, or ask the user to make it",
    "packages": "the sandbox has no package manager of the system; only the user can install such packages",
    "network": "the sandbox blocks the network; only the user can allow it",
    "network_tried": "the command succeeded, but a part of it tried to reach the network, which the sandbox blocks; "
    "only the user can allow it",
    "direct": "commands reach hosts only through the proxy that HTTPS_PROXY names, and a program did not use it",
    "processes": "the command was stopped: it started too many processes",
    "memory": "the command was stopped: it used too much memory",
    "disk": "the command was stopped: it filled the disk",
}
_NETWORK_ALLOWED = (
    'To let commands reach the network, list hosts under network, or set sandbox = "network", in the configuration'
)
_ALLOWED = {
    "write_outside": "To let commands write outside the workspace{where}, list the directory under writable in the "
    "configuration",
    "network": _NETWORK_ALLOWED,
    "network_tried": _NETWORK_ALLOWED,
}

_HOST_REFUSED = {
    "not_named": "commands cannot reach {host}: it is not in `network`, the list of hosts that the user named; ask the "
    "user",
    "address": "commands cannot reach {host}: its address is not public ({detail}); ask the user",
    "server_name": "a TLS connection to {host} was closed: the server name must be that host ({detail})",
    "protocol": "a connection to {host} was closed: only HTTP and TLS may be spoken there",
    "host": "a connection was refused: the host must be a name or an address in its usual form",
    "malformed": "a request was refused: {detail}",
    "unresolved": "the name {host} was not found",
    "unreachable": "{host} did not answer: {detail}",
}
_HOST_OTHERWISE = "a connection through the proxy was closed ({why})"

_NOT_GITS = {
    "link": "git would write through this link",
    "special": "it is not a regular file",
    "unknown": "git does not normally write this name",
    "orders": "it contains commands that the user's own git would run; the next command gets it back",
    "outside": "it names files outside the tree, which the user's own git would write, read or delete",
    "large": "it became too large to search it for files outside the tree; git reset makes a new index",
    "replaced": "it replaced a link of the user's, and git runs what this name contains",
    "submodule": "the user's own git could run commands from its configuration or hooks, or from its submodules",
}
_ARMED = {
    "hooks": "hooks",
    "configuration": "settings that can name programs",
    "redirection": "a `.git` that points to another directory",
    "orders": "links, or an unfinished operation that contains commands",
}


def _skipped(facts: Facts) -> str:
    return f"larger than {size_text(facts['limit'])}" if facts["why"] == "too_large" else _SKIPPED[facts["why"]]


def _too_deep(facts: Facts) -> str:
    count, example = facts["count"], facts["example"]
    were = f"{example} was" if count == 1 else f"{count} directories were"
    instance = "" if count == 1 else f", for example {example}"
    levels = "1 level" if facts["depth"] == 1 else f"{facts['depth']} levels"
    return f"stopped {levels} down: {were} not entered{instance}; name such a directory to search it"


def _refused(facts: Facts) -> str:
    return _REFUSED[facts["kind"]].format(where=_where(facts))


def _allowed(facts: Facts) -> str:
    return _ALLOWED.get(facts["kind"], "").format(where=_where(facts))


def _host_refused(facts: Facts) -> str:
    return _HOST_REFUSED.get(facts["why"], _HOST_OTHERWISE).format(**facts | {"host": facts["host"] or "the host"})


def _host_allowed(facts: Facts) -> str:
    if facts["why"] == "address":
        return f"To let commands reach {facts['host']}, list it under allow_hosts in the configuration, too"
    named = f"To let commands reach {facts['host']}, add it to network in the configuration"
    return named if facts["why"] == "not_named" else ""


def _where(facts: Facts) -> str:
    return f" ({facts['path']})" if facts["path"] else ""


def _not_kept(facts: Facts) -> str:
    names = ", ".join(facts["names"]) + (", …" if facts["count"] > len(facts["names"]) else "")
    return f"the command changed {facts['count']} files whose old contents were not recorded: {names}"


def _undo_partial(facts: Facts) -> str:
    names = ", ".join(facts["names"]) + (", …" if facts["count"] > len(facts["names"]) else "")
    return f"undo cannot restore what commands change in {names}: too many files, or too large; copy what matters first"


def _output_cut(facts: Facts) -> str:
    where = f"a command can read all of it: head -n 50 {shlex.quote(facts['path'])}"
    otherwise = "run the command again with its output in a file"
    return f"{facts['count']} bytes of the output are not shown; {where if facts['path'] else otherwise}"


def _long_file(facts: Facts) -> str:
    first, last, total = facts["first"], facts["last"], facts["total"]
    if (first, last) == (1, total):
        return f"all {total} lines are shown, about {facts['tokens']} tokens; name a range of lines to read less"
    rest = f"; to go on, read from line {last + 1}" if last < total else ""
    return f"lines {first}-{last} of {total} are shown{rest}"


def _processes(count: int) -> str:
    return "1 process runs" if count == 1 else f"{count} processes run"


def _hidden(facts: Facts) -> str:
    """Return the sentence about matches in files that ignore files or exclusions hide."""
    count, by = facts["count"], facts["by"]
    hides = "hides" if by and len(by) == 1 and by[0].startswith(".") else "hide"
    number = f"{'' if facts['complete'] else 'at least '}{count}"
    what = (
        f"{'match' if count == 1 else 'matches'} in files" if facts["what"] == "lines" else "file" + "s" * (count > 1)
    )
    return (
        f"no match; {number} {what} that {' and '.join(by) or 'ignore files'} {hides}, for example {facts['example']}"
    )


def _hook_changed(facts: Facts) -> str:
    return f"a hook of the user reformatted or changed {', '.join(facts['names'])} after this call; read it again"


_CAN_BE_ASKED = ("network", "network_tried", "write_outside", "guarded")


def notes_with_rights(how: str) -> Words:
    """Return the notes on refusals for a dialect whose commands can ask for more rights; `how` says how."""
    return {
        SandboxRefused: Message(
            "note", lambda f: _refused(f) + f"; {how}" * (f["kind"] in _CAN_BE_ASKED), allow=_allowed
        ),
        HostRefused: Message(
            "note", lambda f: _host_refused(f) + f"; {how}" * (f["why"] == "not_named"), allow=_host_allowed
        ),
    }


NOTES: Words = {
    RootReplaced: Message("note", "the workspace directory was replaced; this session still uses the original one"),
    FileSkipped: Message("note", lambda f: f"skipped {f['name']}: {_skipped(f)}"),
    MoreFilesSkipped: Message("note", lambda f: f"skipped {f['count']} more files: {_skipped(f)}"),
    DepthReached: Message("note", _too_deep),
    SearchIncomplete: Message("note", "the search reached its time limit: the counts are lower bounds"),
    HiddenMatches: Message("note", _hidden),
    HiddenUnsearched: Message(
        "note", "no match; ignore files hide more files than can be searched in {seconds:g} seconds"
    ),
    LinesCut: Message("note", "{count} long lines were shortened around the match"),
    LinesUncounted: Message(
        "note",
        "the file is very large: counting its lines stopped after {seconds:g} seconds; there may be more lines",
    ),
    MorePages: Message("note", "showing {shown} of {total} entries; request page {page} for more"),
    AnswerCut: Message("note", "showing {shown} of {total} results, to stay within {tokens} tokens; {how}"),
    OutputCut: Message("note", _output_cut),
    FilesLeftOut: Message(
        "note", "showing the {shown} newest of {total} files; name a directory or a more specific pattern for the rest"
    ),
    LongFile: Message("note", _long_file),
    RuleNotStored: Message("note", "{why}"),
    ProcessesLeft: Message(
        "note",
        lambda f: (
            f"{_processes(len(f['pids']))} in the background until this session ends: "
            f"{', '.join(map(str, f['pids']))}; kill ends {'it' if len(f['pids']) == 1 else 'them'} earlier"
        ),
    ),
    ProcessesEnded: Message(
        "note",
        lambda f: (
            f"{f['count']} background process{'es' * (f['count'] > 1)} ended together with the terminal; "
            "to keep a program running, run it in the foreground of a terminal"
        ),
    ),
    RightsEnded: Message(
        "note",
        lambda f: (
            f"{f['count']} background process{'es' * (f['count'] > 1)} ended with the command: its additional rights "
            "were for this command only"
        ),
    ),
    SandboxDied: Message("note", "the sandbox stopped, and with it the command: its work may be incomplete"),
    SandboxRestarted: Message(
        "note", "the sandbox of this session had stopped with all its processes; a new one was started"
    ),
    SandboxReduced: Message("note", "the sandbox level is only reduced, because {wanted} is not available ({why})"),
    SandboxRefused: Message("note", _refused, allow=_allowed),
    HostRefused: Message("note", _host_refused, allow=_host_allowed),
    ProtectedInToolsOnly: Message("note", "commands can read protected files: the sandbox is {level}"),
    NotRemembered: Message("note", "if a protected file is moved, later sessions may read it: {why}"),
    NotJournaled: Message("note", "this change was not recorded and cannot be undone: {why}"),
    CleanupFailed: Message(
        "note",
        "cleanup after this change failed ({why}) and will be retried by the next change; until then .handrail-* files "
        "may contain the old contents",
    ),
    JournaledElsewhere: Message("note", "the data for undo is stored in {path}, which may be cleared, because {why}"),
    NotKept: Message("note", _not_kept),
    UndoPartial: Message("note", _undo_partial),
    ScanIncomplete: Message(
        "note", "more than {limit} files: changes by the command to further files were not recorded"
    ),
    GitSetAside: Message(
        "note", lambda f: f"{f['name']} was moved to {f['where']}: {_NOT_GITS.get(f['why'], f['why'])}"
    ),
    GitNotSetAside: Message(
        "note",
        lambda f: (
            f"{f['name']} could not be moved away ({f['trouble']}): {_NOT_GITS.get(f['why'], f['why'])}; tell the user"
        ),
    ),
    GitArmed: Message(
        "note",
        lambda f: (
            f"the git repository in {f['path']}, which the command created or changed, "
            f"has {_ARMED.get(f['what'], f['what'])}: "
            "git may run them when the user works there; tell the user"
        ),
    ),
    GitUnseen: Message("note", "{what} is too large to search it for commands that git might run"),
    GitIdentityMissing: Message(
        "note",
        "no author for the commit: the user's git configuration names none; name one with "
        "git -c user.name=NAME -c user.email=ADDRESS commit, or ask the user",
    ),
    CellToolExists: Message("note", "a notebook was changed as text; {tool} changes single cells and keeps the rest"),
    PromptNotRun: Message("note", "the prompt was not run: the output is the page itself"),
    HookSaid: Message("note", "{text}"),
    HookBroken: Message("note", "a hook of the user failed after the call: {why}", allow="{allow}"),
    HookChanged: Message("note", _hook_changed),
    NotAllTyped: Message("note", "only {written} of {size} bytes were written: the program does not read its input"),
}
