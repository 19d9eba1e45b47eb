"""Finds the interpreter that runs the supervisor, even if the sandbox's user cannot reach Handrail's own.

The supervisor is sent as compiled code for Handrail's own Python version, and imports few modules. So an interpreter
with these modules can be copied into the sandbox from handles that Handrail opens itself.
"""

import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

from handrail.kernel.sandbox.view import visible_paths

PREFIX = "/run/python"
"""The path of the copy inside the sandbox, where no command can write."""
MODULES = (
    *("os", "encodings", "encodings.aliases", "encodings.utf_8"),  # needed by every interpreter
    *("_socket", "resource", "select", "termios", "warnings", "_py_warnings"),  # used by the supervisor, if they exist
)


class Interpreter(NamedTuple):
    """Holds the command that runs the supervisor inside the sandbox."""

    command: list[str]
    copies: dict[str, str]
    """Files to copy into the sandbox: path inside, path outside."""


def find(user: tuple[int, int] | None) -> str | None:
    """Return Handrail's interpreter, or a system one of the same version, that `user` can reach; None if none."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (_own(), f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        if user is None or (os.path.exists(path) and visible_paths.reachable(path, *user)):
            return path
    return None


def inside(user: tuple[int, int] | None) -> Interpreter:
    """Return the interpreter to use if files can be copied into the sandbox, as bubblewrap can."""
    path = find(user)
    if path is not None:
        return Interpreter([path], {})
    program, lib, files = copies(PREFIX)
    return Interpreter(["/usr/bin/env", f"LD_LIBRARY_PATH={lib}", program, "-X", "utf8"], files)


def copies(prefix: str) -> tuple[str, str, dict[str, str]]:
    """Return the interpreter's path below a prefix, the directory of its libraries, and what to copy: to, from."""
    own, stdlib = _own(), os.path.realpath(os.path.dirname(os.__file__))
    lib = os.path.join(prefix, os.path.basename(os.path.dirname(stdlib)))
    within = os.path.join(lib, os.path.basename(stdlib))
    program = f"{prefix}/bin/{os.path.basename(own)}"
    files = {program: own, **{os.path.join(lib, os.path.basename(each)): each for each in _libraries()}}
    for file in map(os.path.realpath, _module_files()):
        name = (
            os.path.relpath(file, stdlib)
            if visible_paths.is_inside(file, stdlib)
            else f"lib-dynload/{os.path.basename(file)}"
        )
        files[os.path.join(within, name)] = file
    files[f"{within}/lib-dynload/.keep"] = os.devnull  # without this directory the interpreter prints a warning
    return program, lib, files


def _own() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def _module_files() -> Iterator[str]:
    """Yield the files of MODULES that are neither built in nor frozen, and os.py."""
    for name in MODULES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin not in (None, "built-in", "frozen"):
            yield str(spec.origin)
    yield str(os.__file__)  # frozen, but the interpreter finds its library by this file


def _libraries() -> set[str]:
    """Return the shared libraries of the interpreter itself, as they are mapped into this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        mapped = {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if "/libpython" in line}
    return {path for path in mapped if os.path.basename(path).startswith("libpython")}
