"""Finds the interpreter that the supervisor runs on, also where the user that the sandbox becomes cannot reach ours.

The supervisor is handed over as code of our own version, and needs little else. What it needs can therefore be
copied into the sandbox from handles that we open ourselves, wherever our interpreter lies.
"""

import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

from handrail.kernel.sandbox.view import visible_paths

PREFIX = "/run/python"
"""Where a copy stands inside the sandbox: no command can write there."""
MODULES = (
    *("os", "encodings", "encodings.aliases", "encodings.utf_8"),  # to start at all
    *("_socket", "resource", "select", "termios", "warnings", "_py_warnings"),  # the supervisor's, where there are such
)


class Interpreter(NamedTuple):
    """What runs the supervisor inside the sandbox."""

    command: list[str]
    copies: dict[str, str]
    """Files that are not there otherwise: place inside, place outside."""


def find(user: tuple[int, int] | None) -> str | None:
    """Return our own interpreter, or one of the same version, that `user` can reach; None if there is none."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (_own(), f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        if user is None or (os.path.exists(path) and visible_paths.reachable(path, *user)):
            return path
    return None


def inside(user: tuple[int, int] | None) -> Interpreter:
    """Return what runs the supervisor where files can be copied into the sandbox."""
    path = find(user)
    if path is not None:
        return Interpreter([path], {})
    own, stdlib = _own(), os.path.realpath(os.path.dirname(os.__file__))
    lib = os.path.join(PREFIX, os.path.basename(os.path.dirname(stdlib)))
    within = os.path.join(lib, os.path.basename(stdlib))
    program = f"{PREFIX}/bin/{os.path.basename(own)}"
    copies = {program: own, **{os.path.join(lib, os.path.basename(each)): each for each in _libraries()}}
    for file in map(os.path.realpath, _module_files()):
        name = (
            os.path.relpath(file, stdlib)
            if visible_paths.is_inside(file, stdlib)
            else f"lib-dynload/{os.path.basename(file)}"
        )
        copies[os.path.join(within, name)] = file
    copies[f"{within}/lib-dynload/.keep"] = os.devnull  # without this directory the interpreter complains
    return Interpreter(["/usr/bin/env", f"LD_LIBRARY_PATH={lib}", program, "-X", "utf8"], copies)


def _own() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def _module_files() -> Iterator[str]:
    for name in MODULES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin not in (None, "built-in", "frozen"):
            yield str(spec.origin)
    yield str(os.__file__)  # frozen, but the interpreter knows its library by this file


def _libraries() -> set[str]:
    """Return the shared libraries of the interpreter itself, as they are mapped into this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        mapped = {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if "/libpython" in line}
    return {path for path in mapped if os.path.basename(path).startswith("libpython")}
