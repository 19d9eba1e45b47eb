"""Checks that no file that the agent can write shows its commands more, and that the workspace's environment works."""

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.sandboxes import PYTHON, has_bubblewrap, said, sh, workspace

from handrail import Workspace
from handrail.kernel.sandbox import find_bwrap
from handrail.kernel.sandbox.helpers.landlock_exec import abi
from handrail.kernel.sandbox.landlock_rules import LOWEST_ABI
from handrail.kernel.sandbox.sandbox import SandboxSettings
from handrail.kernel.sandbox.view.occupied_names import OccupiedNames

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
LEFT_OUT = shutil.ignore_patterns("test", "site-packages", "__pycache__", "idlelib", "tkinter", "ensurepip", "config-*")


@dataclass
class Scene:
    """Holds a home with secrets, and a workspace in it whose environment is first on PATH."""

    home: Path
    secret: str
    variables: dict[str, str] = field(default_factory=dict)
    first_on_path: tuple[str, ...] = ()
    settings: SandboxSettings = field(default_factory=SandboxSettings)

    @property
    def root(self) -> Path:
        return self.home / "ws"

    @property
    def user_variables(self) -> dict[str, str]:
        path = [*self.first_on_path, f"{self.root}/.venv/bin", "/usr/bin", "/bin"]
        return {"HOME": str(self.home), "PATH": os.pathsep.join(path), **self.variables}

    def config(self, text: str) -> None:
        (self.root / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
        (self.root / ".venv" / "pyvenv.cfg").write_text(text)

    def run(self, text: str) -> str:
        with workspace(self.root, self.settings, self.user_variables) as processes:
            outcome = sh(processes, text)
            assert outcome.confinement.level == "strict"
            return said(outcome)

    def everything_visible(self) -> str:
        """Return everything that a command can read in the home and in /etc; it follows links."""
        return self.run(f"find -L {self.home} /etc -type f -exec cat {{}} + 2>/dev/null; find {self.home} /etc")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no strict level here")
    home = tmp_path / "user" / "home"
    made = Scene(home, f"TOP-{secrets.token_hex()}")
    for name in (".ssh/id_rsa", ".ssh/bin/script", ".aws/credentials", "mine.txt", "other/.env", ".pyenv/notes"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(made.secret)
    (home / ".ssh" / "bin" / "script").chmod(0o755)
    (tmp_path / "user" / "above.txt").write_text(made.secret)
    made.root.mkdir()
    return made


def toolchain(prefix: Path) -> Path:
    """Install an interpreter with its library, as a version manager does."""
    (prefix / "bin").mkdir(parents=True)
    shutil.copy(PYTHON, prefix / "bin" / VERSION)
    (prefix / "bin" / "python3").symlink_to(VERSION)
    shutil.copytree(os.path.dirname(os.__file__), prefix / "lib" / VERSION, ignore=LEFT_OUT, symlinks=True)
    return prefix


def looks_like_python(prefix: Path, secret: str) -> Path:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python3").write_text("#!/bin/sh\n")
    (prefix / "bin" / "python3").chmod(0o755)
    (prefix / "lib" / VERSION).mkdir(parents=True)
    (prefix / "lib" / VERSION / "os.py").write_text(secret)
    return prefix


def planted_link(scene: Scene) -> None:
    """Link from the home into the workspace, where the agent replaced a directory by a link."""
    (scene.home / "tools").symlink_to(scene.root / "tools")
    (scene.root / "tools").mkdir()
    (scene.root / "tools" / "bin").symlink_to(scene.home / ".ssh")
    scene.first_on_path = (f"{scene.home}/tools/bin",)


def planted_mark(scene: Scene) -> None:
    (scene.home / "tools").symlink_to(scene.root / "tools")
    (scene.root / "tools").symlink_to(scene.home / "other")
    (scene.home / "other" / "bin").mkdir()
    shutil.copy("/bin/true", scene.home / "other" / "bin" / "program")
    scene.first_on_path = (f"{scene.home}/tools/bin",)
    (scene.home / "other" / "conda-meta").mkdir()


def planted_in_a_writable_directory(scene: Scene) -> None:
    cache = scene.home / "cache"
    (cache / "env" / "bin").mkdir(parents=True)
    (cache / "env" / "pyvenv.cfg").write_text(f"home = {scene.home}/.ssh/bin\n")
    (cache / "env" / "lib").symlink_to(scene.home / ".ssh")
    scene.first_on_path = (f"{cache}/env/bin",)
    scene.settings = SandboxSettings(writable=(str(cache),))


def planted_environment_link(scene: Scene) -> None:
    (scene.root / ".venv").symlink_to(scene.home / ".ssh")


def planted_bin_link(scene: Scene) -> None:
    scene.config(f"home = {scene.home}/.ssh/bin\n")
    (scene.root / ".venv" / "bin").rmdir()
    (scene.root / ".venv" / "bin").symlink_to(scene.home / ".ssh")


def chosen_lookalike(scene: Scene) -> None:
    looks_like_python(scene.home / "other" / "python", scene.secret)
    scene.config(f"home = {scene.home}/other/python/bin\n")


def chosen_neighbour(scene: Scene) -> None:
    """Install two versions: the one that no environment names, and other files next to the chosen one, stay hidden."""
    looks_like_python(scene.home / ".pyenv" / "versions" / "other", scene.secret)
    chosen = looks_like_python(scene.home / ".pyenv" / "versions" / "chosen", "")
    (chosen / "token").write_text(scene.secret)
    scene.config(f"home = {chosen}/bin\n")


def based_on(place: str) -> Callable[[Scene], None]:
    return lambda scene: scene.config(f"home = {place.format(home=scene.home)}\n")


HOMES = (
    "{home}/.ssh/bin",
    "{home}/bin",
    "{home}/../bin",
    "/bin",
    "/etc/bin",
    "{home}/.pyenv/bin",
    "{home}/.pyenv/versions/bin",
    "{home}/.pyenv/versions/../../.ssh/bin",
    "{home}/other/bin",
)
PLANTS = [
    planted_link,
    planted_mark,
    planted_in_a_writable_directory,
    planted_environment_link,
    planted_bin_link,
    chosen_lookalike,
    chosen_neighbour,
]


@pytest.mark.parametrize("plant", [*map(based_on, HOMES), *PLANTS], ids=[*HOMES, *(plant.__name__ for plant in PLANTS)])
def test_planted_environment_shows_no_private_directory_of_user(scene: Scene, plant: Callable[[Scene], None]) -> None:
    (scene.home / "bin").mkdir()
    (scene.home / ".pyenv" / "versions").mkdir(exist_ok=True)
    plant(scene)
    told = scene.everything_visible()
    assert scene.secret not in told
    assert "/etc/shadow" not in told
    assert "id_rsa" not in told


def test_planted_environment_shows_nothing_at_reduced_level(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    if abi() < LOWEST_ABI:
        pytest.skip("there is no level `reduced` here")
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    scene.config(f"home = {scene.home}/.ssh/bin\n")
    with workspace(scene.root, SandboxSettings(allow_reduced=True), scene.user_variables) as processes:
        outcome = sh(processes, f"cat {scene.home}/.ssh/id_rsa")
    assert outcome.confinement.level == "reduced"
    assert "Permission denied" in said(outcome)
    assert scene.secret not in said(outcome)


def test_environment_planted_during_session_shows_nothing_later(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in scene.variables.items():
        monkeypatch.setenv(name, value)
    plant = f"mkdir -p .venv/bin; echo 'home = {scene.home}/.ssh/bin' > .venv/pyvenv.cfg; echo key > a.pem"
    with Workspace(str(scene.root), approve="auto", protect=["*.pem"]) as opened:
        assert opened.call("codex", "shell", {"command": plant}).success
        told = str(opened.call("codex", "shell", {"command": "cat a.pem ~/.ssh/id_rsa; ls -A ~"}).to_dict())
    assert scene.secret not in told
    assert "Permission denied" in told  # the protected file is masked, so this is a new sandbox


def test_guarded_name_behind_exchanged_link_is_not_opened(scene: Scene) -> None:
    """A process in the background may exchange the parent after it was looked at, and before the handle is opened."""
    (scene.home / ".kube").mkdir()
    (scene.home / ".kube" / "config").write_text(scene.secret)
    (scene.root / ".git").symlink_to(scene.home / ".kube")
    fd = os.open(scene.root, os.O_RDONLY)
    try:
        with pytest.raises(NotADirectoryError):
            OccupiedNames(fd)._open(".git/config")
    finally:
        os.close(fd)


@pytest.fixture
def fifo(scene: Scene) -> Iterator[Path]:
    scene.config("")
    path = scene.root / ".venv" / "pyvenv.cfg"
    path.unlink()
    os.mkfifo(path)
    yield path
    os.close(os.open(path, os.O_RDWR))  # releases a reader that waits


def test_fifo_in_place_of_pyvenv_cfg_does_not_block_commands(scene: Scene, fifo: Path) -> None:
    pool = ThreadPoolExecutor()
    try:
        assert pool.submit(scene.run, "echo ran").result(timeout=60) == "ran\n"
    finally:
        pool.shutdown(wait=False)


def test_pyvenv_cfg_line_beyond_size_limit_is_ignored(scene: Scene) -> None:
    base = looks_like_python(scene.home / ".pyenv" / "versions" / "one", "PYTHON")
    scene.config(f"{'#' * 70_000}\nhome = {base}/bin\n")
    assert "PYTHON" not in scene.everything_visible()
    scene.config(f"home = {base}/bin\n")
    assert "PYTHON" in scene.everything_visible()


@pytest.mark.parametrize("key", ["readable", "writable"])
@pytest.mark.parametrize("within", ["ws", "data"], ids=["in the workspace", "in a writable directory"])
def test_setting_that_leads_through_link_of_agent_is_ignored(scene: Scene, key: str, within: str) -> None:
    named = scene.home / within / "ref"
    named.parent.mkdir(exist_ok=True)
    named.symlink_to(scene.home / ".ssh")
    settings: dict[str, Any] = {"writable": [str(scene.home / "data")] if within == "data" else []}
    settings[key] = [*settings.get(key, []), str(named)]
    with Workspace(str(scene.root), approve="auto", **settings) as opened:
        assert opened.warnings == [f"{key}: {named} is ignored: commands can change where it leads"]
        told = opened.call("codex", "shell", {"command": f"cat {named}/id_rsa {scene.home}/.ssh/id_rsa"}).to_dict()
    assert scene.secret not in str(told)


def environment(scene: Scene, interpreter: str | Path) -> None:
    """Let the interpreter make the environment, as a user does."""
    made = [str(interpreter), "-m", "venv", "--without-pip", "--symlinks", str(scene.root / ".venv")]
    done = subprocess.run(made, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"this interpreter makes no environment: {done.stderr.decode()}")


def runs_in_its_environment(scene: Scene) -> None:
    text = "import sys, json, ssl; print(sys.prefix)"
    wanted = f"{scene.root}/.venv\n"
    assert scene.run(f".venv/bin/python -c '{text}'; python -c '{text}'") == wanted * 2


@pytest.mark.parametrize(
    ("where", "variables"),
    [
        (".pyenv/versions/3.1.4", {}),
        (".local/share/uv/python/cpython-3.1.4-linux-x86_64-gnu", {}),
        ("roots/pyenv/versions/3.1.4", {"PYENV_ROOT": "roots/pyenv"}),
        ("roots/uv/cpython-3.1.4", {"UV_PYTHON_INSTALL_DIR": "roots/uv"}),
        ("roots/data/uv/python/cpython-3.1.4", {"XDG_DATA_HOME": "roots/data"}),
        ("miniconda3", {}),
    ],
)
def test_workspace_environment_works_with_toolchain_of_user(
    scene: Scene, where: str, variables: dict[str, str]
) -> None:
    scene.variables = {name: str(scene.home / value) for name, value in variables.items()}
    environment(scene, toolchain(scene.home / where) / "bin" / VERSION)
    runs_in_its_environment(scene)
    assert scene.secret not in scene.run(f"find {scene.home} -type f -size -2 -exec cat {{}} +")


def test_workspace_environment_works_with_linked_toolchain(scene: Scene) -> None:
    place = scene.home / ".local/share/uv/python"
    toolchain(place / "cpython-3.1.4")
    (place / "cpython-3.1").symlink_to("cpython-3.1.4")
    environment(scene, place / "cpython-3.1" / "bin" / "python3")
    (scene.root / ".venv" / "pyvenv.cfg").write_text(f"home = {place}/cpython-3.1/bin\n")
    for name in ("python", "python3", VERSION):
        (scene.root / ".venv" / "bin" / name).unlink(missing_ok=True)
        (scene.root / ".venv" / "bin" / name).symlink_to(place / "cpython-3.1" / "bin" / VERSION)
    runs_in_its_environment(scene)


def test_workspace_environment_works_with_system_interpreter(scene: Scene) -> None:
    if not os.access("/usr/bin/python3", os.X_OK):
        pytest.skip("the system has no interpreter")
    environment(scene, "/usr/bin/python3")
    runs_in_its_environment(scene)


def test_workspace_environment_that_is_not_on_path_works(scene: Scene) -> None:
    environment(scene, toolchain(scene.home / ".local/share/uv/python/cpython-3.1.4") / "bin" / VERSION)
    scene.variables = {"PATH": "/usr/bin:/bin"}
    assert scene.run(".venv/bin/python -c 'print(1)'") == "1\n"


def test_toolchain_on_path_is_shown_without_other_files(scene: Scene) -> None:
    looks_like_python(scene.home / "own", "PYTHON")
    (scene.home / "own" / "token").write_text(scene.secret)
    scene.first_on_path = (f"{scene.home}/own/bin",)
    told = scene.everything_visible()
    assert "PYTHON" in told
    assert scene.secret not in told


@pytest.mark.parametrize("variables", [{}, {"PYENV_ROOT": ".pyenv"}])
def test_version_manager_is_shown_only_if_variable_names_it(scene: Scene, variables: dict[str, str]) -> None:
    looks_like_python(scene.home / ".pyenv" / "versions" / "one", "PYTHON")
    (scene.home / ".pyenv" / "notes").unlink()
    looks_like_python(scene.home / ".local", "local")
    scene.first_on_path = (f"{scene.home}/.local/bin",)
    scene.variables = {name: str(scene.home / value) for name, value in variables.items()}
    assert ("PYTHON" in scene.everything_visible()) is bool(variables)
