"""The sentences for what is said beside an answer, the same in every dialect."""

from handrail.model.warnings import (
    AllHidden,
    DepthReached,
    FileSkipped,
    GitArmed,
    GitNotSetAside,
    GitSetAside,
    GitUnseen,
    JournaledElsewhere,
    LinesCut,
    LinesUncounted,
    MoreFilesSkipped,
    MorePages,
    NotAllTyped,
    NotJournaled,
    NotKept,
    NotPutRight,
    NotRemembered,
    ProtectedInToolsOnly,
    RootReplaced,
    RuleNotStored,
    SandboxDied,
    SandboxReduced,
    SandboxRefused,
    SandboxRestarted,
    ScanIncomplete,
    SearchIncomplete,
)
from handrail.tools.messages import Facts, Message, Words

_SKIPPED = {
    "too_large": "larger than the size limit",
    "unreadable": "not readable",
    "abandoned": "the pattern took too long in it",
    "rules": "not a regular file, or too long for an ignore file",
}
_REFUSED = {
    "write_outside": "writing outside the workspace is blocked by the sandbox{where}; only the user can allow it",
    "guarded": "the sandbox keeps this from being changed{where}: tools of the person's own would run it",
    "network": "the network is blocked by the sandbox; only the user can allow it",
    "processes": "the command was ended: it started too many processes",
    "memory": "the command was ended: it used too much memory",
    "disk": "the command was ended: it filled the disk",
}
_ALLOWED = {
    "write_outside": "To let commands write outside the workspace{where}, list the directory under writable in the "
    "configuration",
    "network": 'To let commands reach the network, set sandbox = "network" in the configuration',
}

_NOT_GITS = {
    "link": "git would write through this link",
    "special": "it is no plain file",
    "unknown": "ordinary git work does not write this name",
    "orders": "it holds commands, which the user's own git would run; the next command finds it in its place",
    "outside": "it names files outside of the tree, which the user's own git would write, read or delete",
    "submodule": "the user's own git would run what its configuration or its hooks say",
}
_ARMED = {
    "hooks": "hooks",
    "configuration": "settings that can name programs",
    "redirection": "a `.git` that leads elsewhere",
    "orders": "links, or an unfinished operation that holds commands",
}


def _refused(facts: Facts) -> str:
    return _REFUSED[facts["kind"]].format(where=_where(facts))


def _allowed(facts: Facts) -> str:
    return _ALLOWED.get(facts["kind"], "").format(where=_where(facts))


def _where(facts: Facts) -> str:
    return f" ({facts['path']})" if facts["path"] else ""


def _not_kept(facts: Facts) -> str:
    names = ", ".join(facts["names"]) + (", …" if facts["count"] > len(facts["names"]) else "")
    return f"the command changed {facts['count']} files whose former contents were not kept: {names}"


NOTES: Words = {
    RootReplaced: Message("note", "the workspace directory was replaced; this session still works in the original"),
    FileSkipped: Message("note", lambda f: f"skipped {f['name']}: {_SKIPPED[f['why']]}"),
    MoreFilesSkipped: Message("note", lambda f: f"skipped {f['count']} more files: {_SKIPPED[f['why']]}"),
    DepthReached: Message("note", lambda f: f"stopped at the depth limit: {f['count']} directories were not entered"),
    SearchIncomplete: Message("note", "the search ran out of time: the counts are lower bounds"),
    AllHidden: Message("note", "every file that would match is hidden by ignore files or the default exclusions"),
    LinesCut: Message("note", "{count} long lines were cut around the match"),
    LinesUncounted: Message(
        "note",
        "the file is so large that its lines were counted for {seconds:g} seconds only: there may be more of them",
    ),
    MorePages: Message("note", "showing {shown} of {total} entries; page {page} goes on"),
    RuleNotStored: Message("note", "{why}"),
    SandboxDied: Message("note", "the sandbox died, and the command with it: what it did until then may be incomplete"),
    SandboxRestarted: Message("note", "the session's sandbox had died with all its processes; a new one was started"),
    SandboxReduced: Message("note", "the sandbox is only reduced, because there is no {wanted} here ({why})"),
    SandboxRefused: Message("note", _refused, allow=_allowed),
    ProtectedInToolsOnly: Message("note", "commands can read protected files: the sandbox is {level}"),
    NotRemembered: Message("note", "a protected file that is moved may be readable in later sessions: {why}"),
    NotJournaled: Message("note", "this change was not recorded and cannot be undone: {why}"),
    NotPutRight: Message(
        "note",
        "what this change began could not be cleared away yet: {why}; the next change does it, and until then files "
        "whose names begin with .handrail- may hold what stood there",
    ),
    JournaledElsewhere: Message("note", "what undo needs is kept in {path}, which may be cleared, because {why}"),
    NotKept: Message("note", _not_kept),
    ScanIncomplete: Message("note", "more than {limit} files: what the command changed beyond them was not recorded"),
    GitSetAside: Message(
        "note", lambda f: f"{f['name']} was moved to {f['where']}: {_NOT_GITS.get(f['why'], f['why'])}"
    ),
    GitNotSetAside: Message(
        "note",
        lambda f: (
            f"{f['name']} could not be set aside ({f['trouble']}): {_NOT_GITS.get(f['why'], f['why'])}; tell the user"
        ),
    ),
    GitArmed: Message(
        "note",
        lambda f: (
            f"the git repository in {f['path']}, which the command made or changed, "
            f"has {_ARMED.get(f['what'], f['what'])}: "
            "git may run them when the user works there; tell the user"
        ),
    ),
    GitUnseen: Message("note", "{what} is too large to be looked through for what git might run"),
    NotAllTyped: Message("note", "only {written} of {size} bytes were taken: the program is not reading"),
}
