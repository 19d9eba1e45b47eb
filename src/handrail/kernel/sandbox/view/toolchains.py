"""Finds the toolchains outside the system directories that a command may see.

The user's environment names the toolchains: PATH, and the variables of their managers. Files that an agent can write
are not trusted. A virtual environment among them may choose one of the Pythons that the user's managers installed, and
nothing else; links in such directories are not followed.
"""

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from handrail.kernel.fs.trusted_paths import in_any, resolved
from handrail.kernel.sandbox.view import visible_paths
from handrail.kernel.sandbox.view.visible_paths import SYSTEM
from handrail.model.limits import KIB

PARTS = ("bin", "sbin", "shims", "lib", "lib64", "libexec", "include")
WHOLE_PREFIX_MARKS = ("pyvenv.cfg", "conda-meta")

# (the variable that names a manager's home, its default, a name that must exist in it)
MANAGERS = (
    ("PYENV_ROOT", ".pyenv", "versions"),
    ("RBENV_ROOT", ".rbenv", "versions"),
    ("RUSTUP_HOME", ".rustup", "toolchains"),
    ("NVM_DIR", ".nvm", "versions"),
    ("VOLTA_HOME", ".volta", "tools"),
    ("ASDF_DATA_DIR", ".asdf", "installs"),
    ("SDKMAN_CANDIDATES_DIR", ".sdkman/candidates", "."),
)
PROGRAM_HOMES = {".rustup": ("CARGO_HOME", ".cargo")}
"""Managers whose programs are in another directory: (variable, default)."""

# Where Pythons are installed: (the variable that names a directory, its default, the path below it)
PYTHONS = (
    ("PYENV_ROOT", ".pyenv", "versions"),
    ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", "."),
    ("XDG_DATA_HOME", ".local/share", "uv/python"),
    ("XDG_DATA_HOME", ".local/share", "pypoetry/python"),
    ("XDG_DATA_HOME", ".local/share", "hatch/pythons"),
    ("MISE_DATA_DIR", ".local/share/mise", "installs/python"),
    ("ASDF_DATA_DIR", ".asdf", "installs/python"),
    ("RYE_HOME", ".rye", "py"),
    *(("", name, ".") for name in ("miniconda3", "anaconda3", "miniforge3", "mambaforge")),
    ("HOMEBREW_PREFIX", "/home/linuxbrew/.linuxbrew", "."),
)
SHARED_PYTHONS = "/opt"
ENVIRONMENTS = (".venv", "venv")
_CONFIG_BYTES = 64 * KIB


@dataclass(frozen=True)
class Toolchains:
    """Finds toolchains from the user's environment, which is trusted, and from files, which may not be."""

    user_environment: Mapping[str, str]
    home: str
    root: str
    agent_directories: tuple[str, ...]
    """The directories that commands can write, among them the root."""

    def shown(self) -> list[tuple[str, str]]:
        """Return (path, real path) of what the programs on PATH and Handrail's interpreter need."""
        wanted = {path: real for path in self._wanted() if (real := self._usable(path)) is not None}
        kept: dict[str, str] = {}
        for path in sorted(wanted):
            if not in_any(path, (*SYSTEM, *kept)):
                kept[path] = wanted[path]
        return list(kept.items())

    def _wanted(self) -> Iterator[str]:
        """Yield the paths of all toolchains, usable or not."""
        for entry in (os.path.join(sys.base_prefix, "bin"), *self._entries):
            if not in_any(entry, SYSTEM) and self._holds_programs(entry):
                yield from _parts_of(entry)
        yield from self._managers()
        prefixes = [os.path.dirname(entry) for entry in self._entries]
        prefixes += [os.path.join(self.root, name) for name in ENVIRONMENTS]
        for prefix in dict.fromkeys(prefixes):
            yield from self._base_of(prefix)

    @cached_property
    def _entries(self) -> list[str]:
        """The absolute directories of PATH."""
        path = self.user_environment.get("PATH", "").split(os.pathsep)
        return list(dict.fromkeys(map(os.path.normpath, filter(os.path.isabs, path))))

    @cached_property
    def _never_shown(self) -> set[str]:
        """The home, the workspace, and all their parents."""
        return {
            each
            for place in (self.home, os.path.realpath(self.home), self.root)
            for each in visible_paths.upwards(place)
        }

    def _usable(self, path: str) -> str | None:
        """Return the real path of a toolchain; None if commands can write it, or if it contains home or workspace."""
        real = resolved(path, self.agent_directories)
        if real is None or {path, real} & self._never_shown or in_any(real, self.agent_directories):
            return None
        return real

    def _holds_programs(self, entry: str) -> bool:
        real = self._usable(entry)
        if real is None:
            return False
        with suppress(OSError), os.scandir(real) as entries:  # not a directory, or not readable
            return any(each.is_file() and os.access(each, os.X_OK) for each in entries)
        return False

    def _managers(self) -> Iterator[str]:
        """Yield the homes of the managers that the user's environment names."""
        for variable, name, proof in MANAGERS:
            home = self._directory(variable, name)
            homes = (home, self._directory(*PROGRAM_HOMES[name])) if name in PROGRAM_HOMES else (home,)
            used = variable in self.user_environment or any(in_any(entry, homes) for entry in self._entries)
            if used and os.path.isdir(os.path.join(home, proof)):
                yield home

    def _directory(self, variable: str, name: str) -> str:
        """Return the directory that a variable names, or its default in the home."""
        value = self.user_environment.get(variable, "")
        return os.path.normpath(value if os.path.isabs(value) else os.path.join(self.home, name))

    def _base_of(self, prefix: str) -> Iterator[str]:
        """Yield the parts of the Python that a virtual environment at `prefix` is based on."""
        named = _home_in(f"{prefix}/pyvenv.cfg")
        base = os.path.dirname(os.path.normpath(named))
        if os.path.basename(named.rstrip("/")) != "bin" or in_any(base, SYSTEM):
            return
        real = self._usable(base)
        trusted = resolved(f"{prefix}/pyvenv.cfg", self.agent_directories) is not None
        if real is not None and _is_python(real) and (trusted or in_any(real, self._pythons)):
            yield from _parts_of(os.path.join(base, "bin"))

    @cached_property
    def _pythons(self) -> list[str]:
        """The directories in which the user's managers install Pythons."""
        named = [os.path.join(self._directory(variable, name), place) for variable, name, place in PYTHONS]
        found = [self._usable(os.path.normpath(place)) for place in (*named, SHARED_PYTHONS)]
        return [place for place in found if place is not None]


def _parts_of(entry: str) -> list[str]:
    """Return what belongs to a directory of programs: its whole prefix, parts of the prefix, or only itself."""
    prefix, last = os.path.split(entry)
    if last not in PARTS:
        return [entry]
    if any(os.path.exists(os.path.join(prefix, mark)) for mark in WHOLE_PREFIX_MARKS):
        return [prefix]
    return [os.path.join(prefix, part) for part in PARTS]


def _is_python(prefix: str) -> bool:
    with suppress(OSError):
        versions = [name for name in os.listdir(f"{prefix}/lib") if name.startswith("python3.")]
        library = any(os.path.isfile(f"{prefix}/lib/{name}/os.py") for name in versions)
        return library and os.access(f"{prefix}/bin/python3", os.X_OK)
    return False


def _home_in(config: str) -> str:
    """Return the `home` in a virtual environment's configuration; empty if there is none."""
    try:
        fd = os.open(config, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:  # not found, as with conda, or a link
        return ""
    with open(fd, "rb") as file:
        text = file.read(_CONFIG_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    pairs = (line.partition("=") for line in os.fsdecode(text).splitlines())
    return next((value.strip() for key, _, value in pairs if key.strip() == "home"), "")
