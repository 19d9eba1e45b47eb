"""Declares what programs use through `Workspace.exec`, `read_bytes` and `write_bytes`. No model is offered these tools.

They pass the same router as the tools of a model, so rules, hooks, sandbox, journal and log treat both alike. Bytes
that are UTF-8 travel as text, so that questions and logs can show them; other bytes travel as base64.
"""

import shlex
from typing import Any

from handrail.model.effects import Effect
from handrail.model.faults import BadParameters, Problem
from handrail.model.files import Put
from handrail.model.paths import quote, unquote
from handrail.ops.byte_values import packed, unpacked
from handrail.runtime.call import Call
from handrail.runtime.raw_commands import Program, execute
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect

dialect = Dialect("raw")
_CHANGES = Effect.READ | Effect.CREATE | Effect.WRITE


class Exec(Params):
    argv: list[str] = field("The program and its arguments.", min_length=1)
    stdin: str | None = field("The input as text.", default=None, body=True)
    stdin_base64: str | None = field("The input as base64.", default=None, body=True)
    env: list[str] | None = field("Additional variables, each as NAME=value.", default=None)
    cwd: str = field("The directory, relative to the root.", default=".")
    timeout: float | None = field("The time limit in seconds.", default=None)
    user: str | None = field("The user inside the sandbox, by name or number.", default=None)


class ReadBytes(Params):
    path: str = field("The file.", path=True)


class WriteBytes(Params):
    path: str = field("The file.", path=True)
    data: str | None = field("The content as text.", default=None, body=True)
    data_base64: str | None = field("The content as base64.", default=None, body=True)
    mode: int | None = field("The permission bits.", default=None, ge=0, le=0o777)


class ListTree(Params):
    path: str = field("The file or directory.", path=True)


@dialect.tool("exec", Effect.RUN)
def run_program(p: Exec, c: Call) -> dict[str, Any]:
    """Run a program in the sandbox without a shell; return all that it printed."""
    pairs = [each.partition("=") for each in p.env or ()]
    if wrong := [name for name, equals, _ in pairs if not name or not equals]:
        raise BadParameters([Problem("env", "choice", "NAME=value", wrong[0])], {})
    given = {name: value for name in ("stdin", "stdin_base64") if (value := getattr(p, name)) is not None}
    stdin = unpacked("stdin", given) if given else None
    environment = {name: value for name, _, value in pairs}
    assigned = "".join(f"{name}={shlex.quote(value)} " for name, value in environment.items())
    program = Program(p.argv, stdin, environment, p.cwd, p.timeout, p.user)
    ran = execute(c, program, assigned + shlex.join(p.argv))
    streams: dict[str, Any] = {}
    for name, stream in (("stdout", ran.stdout), ("stderr", ran.stderr)):
        streams |= packed(name, stream.head + stream.tail)
        streams[f"{name}_bytes"] = stream.total_bytes
        streams[f"{name}_file"] = stream.spool
    return {
        **streams,
        "exit_code": ran.exit_code,
        "signal": ran.signal,
        "timed_out": ran.timed_out,
        "seconds": round(ran.seconds, 6),
    }


@dialect.tool("read_bytes", Effect.READ)
def read_bytes(p: ReadBytes, c: Call) -> dict[str, Any]:
    """Return the bytes of a file."""
    file = c.files.read(p.path)
    return {**packed("data", file.data), "mode": file.mode & 0o777}


@dialect.tool("write_bytes", _CHANGES)
def write_bytes(p: WriteBytes, c: Call) -> dict[str, Any]:
    """Write a whole file, new or existing."""
    given = {name: value for name in ("data", "data_base64") if (value := getattr(p, name)) is not None}
    data, old = unpacked("data", given), c.files.read_if_there(p.path)
    c.files.commit(Put(p.path, data, old, p.mode))
    return {"bytes": len(data)}


@dialect.tool("list_tree", Effect.READ)
def list_tree(p: ListTree, c: Call) -> dict[str, Any]:
    """Return the paths of all files below a directory, and of its directories; links are not followed."""
    if c.files.kind(p.path) != "directory":
        c.files.entry(p.path)  # raises a fault if there is nothing
        return {"files": [], "directories": [], "is_file": True}
    top, files, directories, todo = unquote(p.path), list[str](), list[str](), [""]
    while todo:
        stem = todo.pop()
        for entry in c.files.entries(quote(f"{top}/{stem}")):
            name = stem + entry.name
            if entry.is_directory and not entry.is_link:
                directories.append(quote(name))
                todo.append(f"{name}/")
            elif entry.kind == "file" and not entry.is_link:
                files.append(quote(name))
        if len(files) + len(directories) > c.limits.listed_files:
            raise BadParameters([Problem("path", "maximum", f"{c.limits.listed_files} files", "more")], {})
    return {"files": sorted(files), "directories": sorted(directories), "is_file": False}
