"""Generates commits, and turns each one into the calls of every editing tool.

To add a tool, add a line to `EDITORS`: what it can do, and which calls do it.
"""

import random
import shutil
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

from ops.patch_trees import run, write

Files = dict[str, tuple[bytes, int]]
"""Content and mode by path."""
Made = tuple[str, dict[str, Any]]
"""One call: the tool and its parameters."""

_NAMES = ["a.py", "b.txt", "lib/c.py", "lib/deep/d.txt", "sp ace.md", "\u00e9.txt", "e", "x/y/z/f.py"]
_LINES = [
    "",
    "    return x",
    "}",
    "x = 1",
    "def f():",
    "# \u2013 \u201cq\u201d",
    "\tt",
    "end",
    "-",
    "+ a",
    "a\\nb",
    "$1 \\1",
]


class Commit(NamedTuple):
    before: Files
    after: Files
    moves: dict[str, str] = {}  # noqa: RUF012  never changed
    """The old name of each file that was renamed, by its new name."""


# ── generating ──


def commits(seed: int, count: int) -> Iterator[Commit]:
    """Yield a history: each commit begins where the one before ended."""
    chance = random.Random(seed)
    files = {name: (_content(chance), 0o644) for name in chance.sample(_NAMES, 4)}
    for _ in range(count):
        after, origins = dict(files), {name: name for name in files}
        while after == files:
            for _ in range(chance.randint(1, 3)):
                _change(chance, after, origins)
        yield Commit(files, after, {name: old for name, old in origins.items() if name != old})
        files = after


def _content(chance: random.Random) -> bytes:
    lines = [_line(chance) for _ in range(chance.randint(1, 40))]
    if chance.random() < 0.5:  # repeated blocks
        block = [_line(chance) for _ in range(chance.randint(1, 14))]
        for _ in range(chance.randint(2, 4)):
            at = chance.randint(0, len(lines))
            lines[at:at] = block
    end = "\r\n" if chance.random() < 0.25 else "\n"
    return (end.join(lines) + (end if chance.random() < 0.8 else "")).encode()


def _line(chance: random.Random) -> str:
    return chance.choice(_LINES) if chance.random() < 0.6 else f"line {chance.randint(0, 999)}"


def _change(chance: random.Random, files: Files, origins: dict[str, str]) -> None:
    """Change some file. `origins` holds the name before the commit of each file that was there before it."""
    free = [name for name in [*_NAMES, f"new{chance.randint(0, 9)}/in/g.py"] if name not in files]
    what = chance.choice(["edit"] * 6 + ["create", "delete", "rename", "over", "swap", "mode", "ends", "last"])
    if not files or (what == "create" and free):
        files[chance.choice(free)] = _content(chance), 0o644
        return
    name, other = chance.choice(sorted(files)), chance.choice(sorted(files))
    data, mode = files[name]
    if what == "delete" and len(files) > 1:
        del files[name]
        origins.pop(name, None)
    elif what == "rename" and free:
        _rename(files, origins, name, target := chance.choice(free))
        files[target] = (_edited(chance, data) if chance.random() < 0.5 else data), mode
    elif what == "over" and name != other:
        _rename(files, origins, name, other)
    elif what == "swap" and name != other:
        _rename(files, origins, other, "")
        _rename(files, origins, name, other)
        _rename(files, origins, "", name)
    elif what == "mode":
        files[name] = data, mode ^ 0o111
    elif what == "ends":
        plain = data.replace(b"\r\n", b"\n")
        files[name] = (plain.replace(b"\n", b"\r\n") if plain == data else plain), mode
    elif what == "last":
        end = b"\r\n" if b"\r\n" in data else b"\n"
        files[name] = (data.removesuffix(end) if data.endswith(end) else data + end), mode
    else:
        files[name] = _edited(chance, data), mode


def _rename(files: Files, origins: dict[str, str], old: str, new: str) -> None:
    files[new] = files.pop(old)
    origins.pop(new, None)
    if old in origins:
        origins[new] = origins.pop(old)


def _edited(chance: random.Random, data: bytes) -> bytes:
    lines = data.decode().splitlines(keepends=True)
    end = "\r\n" if b"\r\n" in data else "\n"
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, max(0, len(lines) - 1))
        lines[at : at + chance.randint(0, 3)] = [_line(chance) + end for _ in range(chance.randint(0, 3))]
    return "".join(lines).encode()


# ── turning into calls ──


def _whole(tool: str, path: str, content: str) -> Callable[[str, str], Made]:
    return lambda name, text: (tool, {path: name, content: text})


def _groups(old: str, new: str, context: int) -> list[tuple[int, int, int, int]]:
    matcher = SequenceMatcher(None, _split(old), _split(new), autojunk=False)
    return [(each[0][1], each[-1][2], each[0][3], each[-1][4]) for each in matcher.get_grouped_opcodes(context)]


def _split(text: str) -> list[str]:
    """Split at LF only."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def replacements(old: str, new: str) -> list[tuple[str, str]]:
    """Return the pairs of texts that turn one text into the other; each text to find occurs once at its turn."""
    lines, wanted, pairs = _split(old), _split(new), []
    for first, last, start, stop in reversed(_groups(old, new, 0)):
        low, high = first, last
        while _occurrences("".join(lines), "".join(lines[low:high])) != 1 and (low, high) != (0, len(lines)):
            low, high = max(0, low - 1), min(len(lines), high + 1)
        changed = lines[low:first] + wanted[start:stop] + lines[last:high]
        pairs.append(("".join(lines[low:high]), "".join(changed)))
        lines[low:high] = changed
    return pairs


def _occurrences(text: str, part: str) -> int:
    if not part:
        return 2
    return sum(text.startswith(part, at) for at in range(len(text) - len(part) + 1))


def line_edits(old: str, new: str) -> list[dict[str, Any]]:
    """Return edits by line number, the last lines first."""
    wanted, edits = _split(new), []
    for first, last, start, stop in reversed(_groups(old, new, 0)):
        content = "".join(wanted[start:stop])
        if first == last:
            edits.append({"operation": "insert", "start_line": first, "content": content})
        elif start == stop:
            edits.append({"operation": "delete", "start_line": first + 1, "end_line": last})
        else:
            edits.append({"operation": "replace", "start_line": first + 1, "end_line": last, "content": content})
    return edits


def envelope(commit: Commit) -> str:
    """Return a commit in the form between Begin and End Patch; the renames come first."""
    before, after, moves = commit
    parts = []
    for name, old_name in moves.items():
        old, new = before[old_name][0].decode(), after[name][0].decode()
        parts.append(f"*** Update File: {old_name}\n*** Move to: {name}\n" + "".join(_chunks(old, new)))
    for name in sorted((before.keys() | after.keys()) - moves.keys()):
        source, new_file = origin(commit, name), after.get(name)
        if new_file is None and source:
            parts.append(f"*** Delete File: {name}\n")
        elif new_file and source is None:
            added = new_file[0].decode().split("\n")[:-1]
            parts.append(f"*** Add File: {name}\n" + "".join(f"+{line}\n" for line in added))
        elif new_file and source and source[0] != new_file[0]:
            changed = _chunks(source[0].decode(), new_file[0].decode())
            parts.append(f"*** Update File: {name}\n" + "".join(changed))
    return f"*** Begin Patch\n{''.join(parts)}*** End Patch\n"


def origin(commit: Commit, name: str) -> tuple[bytes, int] | None:
    """Return the file that a name has before the commit, after its renames; None if there is none."""
    moved_away = name in commit.moves.values() and name not in commit.moves
    return None if moved_away else commit.before.get(commit.moves.get(name, name))


def _chunks(old: str, new: str) -> Iterator[str]:
    matcher = SequenceMatcher(None, _split(old), _split(new), autojunk=False)
    for group in matcher.get_grouped_opcodes(3):
        yield "@@\n"
        for kind, first, last, start, stop in group:
            if kind == "equal":
                yield from (f" {line.removesuffix(chr(10))}\n" for line in _split(old)[first:last])
                continue
            yield from (f"-{line.removesuffix(chr(10))}\n" for line in _split(old)[first:last])
            yield from (f"+{line.removesuffix(chr(10))}\n" for line in _split(new)[start:stop])
        if group[-1][2] == len(_split(old)):
            yield "*** End of File\n"


def unified(commit: Commit, directory: Path, *options: str) -> str:
    """Return a commit as git prints it."""
    write(directory, {})
    run("git", "init", "-q", cwd=directory)
    trees = []
    for tree in (commit.before, commit.after):
        for path in [each for each in directory.iterdir() if each.name != ".git"]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        plant(directory, tree)
        run("git", "add", "-A", cwd=directory)
        trees.append(run("git", "write-tree", cwd=directory).stdout.decode().strip())
    return run("git", "diff", "--find-renames", *options, *trees, cwd=directory).stdout.decode()


def plant(root: Path, files: Files) -> None:
    """Make a tree of files."""
    for name, (data, mode) in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)


class Editor(NamedTuple):
    """Says how one set of tools makes a commit."""

    dialect: str
    edit: Callable[[str, str, str], list[Made]] | None = None
    """The calls that change a file, from path, old and new text."""
    write: Callable[[str, str], Made] | None = None
    """The call that writes a new file, or, without `edit`, any file."""
    delete: Callable[[str], Made] | None = None
    read: Callable[[str], Made] | None = None
    """The call that the tool wants before an edit."""
    patch: Callable[[Commit, Path], Made] | None = None
    """The call that makes a whole commit."""
    ends_last_line: bool = True
    """Whether an edit can change whether the last line ends."""
    replaces: bool = True
    """Whether it can write a file that is there as a whole. An edit keeps the kind of line ends that a file has."""
    overwrite: Callable[[str, str], Made] | None = None
    """The call that writes a file that is there, if that is another tool."""
    absolute: bool = False
    modes: bool = False
    moves: bool = False
    """Whether it makes the renames of a commit as renames."""


def _pairs(tool: str, path: str, old: str, new: str) -> Callable[[str, str, str], list[Made]]:
    return lambda name, before, after: [
        (tool, {path: name, old: find, new: put}) for find, put in replacements(before, after)
    ]


def _str_replace(name: str, before: str, after: str) -> list[Made]:
    pairs = replacements(before, after)
    given = [{"command": "str_replace", "path": name, "old_str": find, "new_str": put} for find, put in pairs]
    return [("str_replace_based_edit_tool", each) for each in given]


def _str_create(name: str, text: str) -> Made:
    return "str_replace_based_edit_tool", {"command": "create", "path": name, "file_text": text}


def _file_patch(name: str, before: str, after: str) -> list[Made]:
    pairs = [{"find": find, "replace": put} for find, put in replacements(before, after)]
    return [("file.patch", {"path": name, "patches": pairs})]


def _edit_lines(name: str, before: str, after: str) -> list[Made]:
    return [("edit_lines", {"path": name, **edit}) for edit in line_edits(before, after)]


def _unified(commit: Commit, directory: Path) -> Made:
    return "apply_patch_json", {"patch": unified(commit, directory)}


def _broken(commit: Commit, directory: Path) -> Made:
    """Show a file that another one replaced as a rename, so that there are swaps."""
    return "apply_patch_json", {"patch": unified(commit, directory, "--break-rewrites")}


def _envelope(commit: Commit, _: Path) -> Made:
    return "apply_patch_freeform", {"patch": envelope(commit)}


def _envelope_2026(commit: Commit, _: Path) -> Made:
    return "apply_patch", {"input": envelope(commit)}


def _instructed(name: str, before: str, after: str) -> list[Made]:
    made = _pairs("replace", "file_path", "old_string", "new_string")(name, before, after)
    return [(tool, {**params, "instruction": "Change the text."}) for tool, params in made]


def _created(name: str, text: str) -> Made:
    diff = "".join(f"+{line}\n" for line in text.removesuffix("\n").split("\n")) if text else ""
    open_end = "\\ No newline at end of file\n" if text and not text.endswith("\n") else ""
    return "apply_patch", {"type": "create_file", "path": name, "diff": diff + open_end}


def _updated(name: str, before: str, after: str) -> list[Made]:
    return [("apply_patch", {"type": "update_file", "path": name, "diff": "".join(_chunks(before, after))})]


_CONTEXT = {
    "write": _whole("create_file", "path", "content"),
    "overwrite": _whole("update_file", "path", "content"),
    "delete": lambda name: ("delete_file", {"path": name}),
}
EDITORS: dict[str, Editor] = {
    "file.write": Editor(
        "file", write=_whole("file.write", "path", "content"), delete=lambda n: ("file.delete", {"path": n})
    ),
    "file.patch": Editor("file", _file_patch, _whole("file.write", "path", "content")),
    "gemini.write_file": Editor("gemini", write=_whole("write_file", "file_path", "content"), absolute=True),
    "gemini.replace": Editor(
        "gemini",
        _pairs("replace", "file_path", "old_string", "new_string"),
        _whole("write_file", "file_path", "content"),
        absolute=True,
    ),
    "copilot.replace_string_in_file": Editor(
        "copilot",
        _pairs("replace_string_in_file", "path", "old_string", "new_string"),
        _whole("create_file", "path", "content"),
        replaces=False,
    ),
    "context.replace_in_file": Editor("context", _pairs("replace_in_file", "path", "find", "replace"), **_CONTEXT),  # type: ignore[arg-type]
    "context.edit_lines": Editor("context", _edit_lines, ends_last_line=False, **_CONTEXT),  # type: ignore[arg-type]
    "codex.apply_patch_json": Editor("codex", patch=_unified, modes=True),
    "codex.apply_patch_json with swaps": Editor("codex", patch=_broken, modes=True),
    "codex.apply_patch_freeform": Editor("codex", patch=_envelope, replaces=False, ends_last_line=False, moves=True),
    "codex-2026.apply_patch": Editor(
        "codex-2026", patch=_envelope_2026, replaces=False, ends_last_line=False, moves=True
    ),
    "gemini-3.replace": Editor("gemini-3", _instructed, _whole("write_file", "file_path", "content")),
    "openai.apply_patch": Editor(
        "openai",
        edit=_updated,
        write=_created,
        delete=lambda n: ("apply_patch", {"type": "delete_file", "path": n}),
        ends_last_line=False,
    ),
    "claude-agent.edit": Editor(
        "claude-agent",
        _pairs("edit", "file_path", "old_string", "new_string"),
        _whole("write", "file_path", "content"),
        read=lambda n: ("read", {"file_path": n}),
        absolute=True,
    ),
    "claude.str_replace_based_edit_tool": Editor("claude", _str_replace, _str_create, absolute=True, replaces=False),
    "claude-code.Edit": Editor(
        "claude-code",
        _pairs("Edit", "file_path", "old_string", "new_string"),
        _whole("Write", "file_path", "content"),
        read=lambda n: ("Read", {"file_path": n}),
        absolute=True,
    ),
}
"""The editing tools by name: dialect and tool."""
