"""Decides which files a command may leave in a git directory: an allow-list by name, kind and content.

Git runs the programs that its configuration and hooks name, follows links when it writes, and continues an unfinished
operation as the files of that operation say. Every file that is not listed here is therefore guarded or set aside.
"""

import re

ASIDE = "handrail-aside"
"""The directory in a git directory into which files are set aside. Git does not use this name."""

OCCUPIED: dict[str, bytes | None] = {
    "config": b"",
    "config.worktree": b"",
    "commondir": b".\n",
    "hooks": None,
    "info": None,
    "modules": None,
    "worktrees": None,
    "remotes": None,
    "branches": None,
    ASIDE: None,
}
"""Names that git obeys, each with the placeholder, which has no effect, for a missing one; None: an empty directory."""
OCCUPIED_LINKED: dict[str, bytes | None] = {"config.worktree": b"", ASIDE: None}
"""The same for the directory of a linked worktree, which has a `commondir` and finds the rest there."""

DEEP = frozenset({"refs", "logs", "reftable", "rr-cache", "lost-found", "NOTES_MERGE_WORKTREE"})
"""Directories that are checked at every depth."""
SHALLOW = frozenset({"objects", "objects/info", "objects/pack", "objects/info/commit-graphs", "lfs"})
"""Directories of which only the direct entries are checked: the names of deeper files are hashes of their content."""
UNFINISHED = frozenset({"rebase-merge", "rebase-apply", "sequencer"})
"""Directories of unfinished operations: checked at every depth, and the content of their files is checked too."""
_IN_OBJECTS = re.compile(
    r"[0-9a-f]{2}|pack|info|maintenance\.lock|schedule\.lock|(?:tmp_|incoming-|bulk-|tmp-objdir)[\w.-]*"
)
_IN_OBJECTS_INFO = re.compile(r"(?:packs|commit-graph|commit-graphs|multi-pack-index)(?:\.lock|_\w{6})?|(?:tmp_)\w+")
_FILE = re.compile(
    r"""(?: (?:[A-Z]+_)*HEAD | (?:COMMIT|TAG|NOTES)_EDITMSG | EDIT_DESCRIPTION | (?:MERGE|SQUASH)_MSG
        | MERGE_(?:MODE|RR|AUTOSTASH) | AUTO_MERGE | NOTES_MERGE_(?:PARTIAL|REF)
        | BISECT_(?:ANCESTORS_OK|EXPECTED_REV|FIRST_PARENT|LOG|NAMES|RUN|START|TERMS)
        | ADD_EDIT\.patch | addp-hunk-edit\.diff
        | index | index\.stash\.[0-9]+ | next-index-[0-9]+ | sharedindex(?:\.[0-9a-f]{40,64}|_\w{6})
        | packed-refs | packed-refs\.new | shallow | shallow_\w{6} | gc\.pid | gc\.log
    )(?:\.lock)?""",
    re.VERBOSE,
)

_STRATEGY = r"(?:ort|recursive|resolve|octopus|ours|subtree)"
_WORDS = r"[\w =:'-]*"
_APPLY = r"-[Cp][0-9]+|--whitespace=[\w-]+|--ignore-space-change|--ignore-whitespace|--reject"
_KEY_ID = r"(?:-S[\w@.+ <>-]*)?"
_QUOTED = r"'(?:[^']|'\\'')*'"
_AUTHOR = rf"(?:GIT_AUTHOR_[A-Z]+={_QUOTED})?"
_PART = r"(?!\.{1,2}(?:/|\0))[^/\0]+"
_STEPS = (
    *("p", "pick", "r", "reword", "e", "edit", "s", "squash", "f", "fixup", "d", "drop", "l", "label", "t", "reset"),
    *("m", "merge", "u", "update-ref", "b", "break", "noop", "revert"),
)
_TODO = rf"[ \t]*(?:#.*|(?:{'|'.join(_STEPS)})(?:[ \t].*)?)?"
_SETTINGS = (
    *("signoff", "record-origin", "allow-ff", "edit", "no-commit", "allow-empty", "allow-empty-message", "mainline"),
    *("keep-redundant-commits", "strategy-option", "allow-rerere-auto", "default-msg-cleanup"),
)
_OPTION = rf"\s*+(?:\[options\]|(?:{'|'.join(_SETTINGS)})\s*=\s*[\w=-]*|strategy\s*=\s*{_STRATEGY})?\s*+"
"""Takes blanks without giving any back (`*+`): the time stays proportional to the length of a line."""
_LINES = {
    "rebase-merge/git-rebase-todo": _TODO,
    "rebase-merge/strategy": f"{_STRATEGY}?",
    "rebase-merge/strategy_opts": _WORDS,
    "rebase-merge/gpg_sign_opt": _KEY_ID,
    "rebase-merge/allow_rerere_autoupdate": _WORDS,
    "rebase-merge/author-script": _AUTHOR,
    "rebase-apply/author-script": _AUTHOR,
    "rebase-apply/apply-opt": rf"(?:\s*'(?:{_APPLY})')*\s*",
    "rebase-apply/gpg_sign_opt": _KEY_ID,
    "rebase-apply/allow_rerere_autoupdate": _WORDS,
    "sequencer/todo": _TODO,
    "sequencer/opts": _OPTION,
    "MERGE_RR": rf"(?:[0-9a-f]{{40,64}}(?:\.[0-9]+)?\t(?:{_PART}/)*{_PART}\0)*",
    "BISECT_NAMES": rf"(?:\s*{_QUOTED})*\s*",
    "BISECT_TERMS": r"(?:[\w.][\w./-]*)?",
    "BISECT_START": r"(?:[\w.][\w./-]*)?",
    "BISECT_LOG": r"(?:#.*|git bisect [^$`;|&<>]*)?",
}
"""Files from which git, or one of its shell scripts, reads commands: the form of a line that runs no program."""
_ORDERS = {name: re.compile(line) for name, line in _LINES.items()}

_PLAIN_KEYS = re.compile(
    r"""core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol
            |quotepath|abbrev)
        | user\.(?:name|email) | init\.defaultbranch | extensions\.objectformat
        | remote\.(?:url|pushurl|fetch|tagopt) | branch\.(?:remote|merge|rebase|description) | submodule\.active
        | pull\.(?:rebase|ff) | fetch\.prune | push\.default | merge\.(?:ff|conflictstyle) | rebase\.autostash
        | color\.ui | advice\.\w+ | gc\.(?:auto|autodetach)
    """,
    re.VERBOSE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_SECTION = re.compile(r'\[([A-Za-z0-9.-]+)(?: "[^"\\]*")?\]')
_SETTING = re.compile(r"""([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*+([^"\\]*))?""")


def may_be_written(name: str, *, is_directory: bool) -> bool:
    """Return whether ordinary git work writes this name at the top of a git directory."""
    if is_directory:
        return name in DEEP or name in UNFINISHED or name in SHALLOW
    return bool(_FILE.fullmatch(name))


def belongs(directory: str, name: str) -> bool:
    """Return whether git may write this name in a checked directory; only `objects` and `objects/info` limit names."""
    if directory == "objects":
        return bool(_IN_OBJECTS.fullmatch(name))
    return directory != "objects/info" or bool(_IN_OBJECTS_INFO.fullmatch(name))


def gives_orders(name: str) -> bool:
    """Return whether git reads commands from this file, so that its content must be checked."""
    return name in _ORDERS


def is_harmless(name: str, content: bytes) -> bool:
    """Return whether the commands in this file run nothing but git itself."""
    try:
        return all(map(_ORDERS[name].fullmatch, content.decode().split("\n")))
    except UnicodeDecodeError:
        return False


def is_plain_config(content: bytes) -> bool:
    """Return whether all settings run no program, as in the files that `git init` and `git clone` write.

    Git ends a line only at a line feed, and joins quoted and escaped parts of a value. So a value with a quote, a
    backslash or a control character is not plain.
    """
    section = ""
    try:
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        return False
    if _CONTROL.search(text):
        return False
    for line in (each.strip(" \t") for each in text.split("\n")):
        if not line or line[0] in "#;":
            continue
        if header := _SECTION.fullmatch(line):
            section = header[1].lower()
            continue
        setting = _SETTING.fullmatch(line)
        if setting is None or not _PLAIN_KEYS.fullmatch(f"{section}.{setting[1].lower()}"):
            return False
        if setting[1].lower() in ("url", "pushurl", "remote") and not _is_address(setting[2] or ""):
            return False
    return True


def _is_address(value: str) -> bool:
    """Return whether a remote is an ordinary address: `ext::…` and similar ones name a program."""
    return not value.startswith("-") and "::" not in value


def pointed_to(content: bytes) -> str:
    """Return the path that a `.git` file names, read as git reads it; empty if the file names none."""
    text = first_line(content)
    return text.removeprefix("gitdir: ") if text.startswith("gitdir: ") else ""


def first_line(content: bytes) -> str:
    """Return the path in a file of git: without line ends at its end, and up to a NUL."""
    return content.rstrip(b"\r\n").partition(b"\0")[0].decode(errors="surrogateescape")
