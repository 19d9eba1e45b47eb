"""Tests the plugs of harnesses that need Python 3.12, with their packages there, and with stand-ins before.

The stand-ins have the names, fields and signatures of nemo-gym 0.4.0, harbor 0.24.0 and openhands-sdk 1.58.0.
"""

import asyncio
import enum
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import pytest
from pydantic import BaseModel
from support.documents import fences

pytestmark = pytest.mark.sandbox
OPTIONS = {"hosts": 1}


def modules(monkeypatch: pytest.MonkeyPatch, plug: str, **contents: dict[str, Any]) -> Any:
    """Import a plug with its package, or with stand-ins in its place if it is not installed."""
    package = next(iter(contents)).partition("__")[0]
    for dotted, names in ({} if find_spec(package) else contents).items():
        parts = dotted.split("__")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            if name not in sys.modules:
                made = ModuleType(name)
                made.__path__ = []
                monkeypatch.setitem(sys.modules, name, made)
        for name, value in names.items():
            setattr(sys.modules[".".join(parts)], name, value)
    name = f"handrail.fleet.plugs.{plug}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    return import_module(name)


@pytest.fixture(autouse=True)
def forget_plugs() -> Iterator[None]:
    yield
    for plug in ("nemo_gym", "harbor_environment", "openhands_workspace"):
        sys.modules.pop(f"handrail.fleet.plugs.{plug}", None)


# ── NeMo Gym ──


class SandboxStatus(enum.StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"


@dataclass(frozen=True)
class SandboxExecResult:
    stdout: str | None
    stderr: str | None
    return_code: int
    error_type: str | None = None


@dataclass
class SandboxHandle:
    sandbox_id: str
    provider_name: str
    raw: Any


@dataclass(frozen=True)
class SandboxSpec:
    image: str | None = None
    workdir: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    provider_options: dict[str, Any] = field(default_factory=dict)


class SandboxCreateError(RuntimeError):
    pass


def nemo_gym_plug(monkeypatch: pytest.MonkeyPatch) -> Any:
    names = (SandboxStatus, SandboxExecResult, SandboxHandle, SandboxSpec, SandboxCreateError)
    base = {each.__name__: each for each in names}
    return modules(monkeypatch, "nemo_gym", nemo_gym__sandbox__providers__base=base)


def test_nemo_gym_provider_runs_commands_and_moves_files(
    tree: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug = nemo_gym_plug(monkeypatch)
    base = import_module("nemo_gym.sandbox.providers.base")
    (tmp_path / "up").write_bytes(b"\xff")

    async def run() -> None:
        provider = plug.HandrailProvider(tree, **OPTIONS)
        with pytest.raises(base.SandboxCreateError, match="image"):
            await provider.create(base.SandboxSpec(image="debian"))
        handle = await provider.create(base.SandboxSpec(env={"X": "1"}, files={"note": "n"}))
        assert await provider.status(handle) == base.SandboxStatus.RUNNING
        done = await provider.exec(handle, "cat note; echo $X$Y; exit 3", env={"Y": "2"})
        assert done == base.SandboxExecResult("n12\n", "", 3)
        assert (await provider.exec(handle, "sleep 9", timeout_s=0.3)).error_type == "timeout"
        assert (await provider.exec(handle, "pwd", cwd="/tmp")).stdout == "/tmp\n"
        await provider.upload_file(handle, tmp_path / "up", "/tmp/in/up")
        await provider.download_file(handle, "/tmp/in/up", tmp_path / "down")
        assert (tmp_path / "down").read_bytes() == b"\xff"
        await provider.close(handle)
        assert await provider.status(handle) == base.SandboxStatus.STOPPED
        await provider.aclose()

    asyncio.run(run())


# ── Harbor ──


class HarborExecResult(BaseModel):
    stdout: str | None = None
    stderr: str | None = None
    return_code: int


class EnvironmentCapabilities(BaseModel):
    disable_internet: bool = False


class EnvironmentConfig(BaseModel):
    docker_image: str | None = None


class TrialPaths:
    def __init__(self, trial_dir: Path) -> None:
        self.trial_dir = trial_dir


class BaseEnvironment(ABC):
    def __init__(
        self,
        environment_dir: Path,
        environment_name: str,
        session_id: str,
        trial_paths: TrialPaths,
        task_env_config: EnvironmentConfig,
        mounts: list[dict[str, Any]] | None = None,
    ) -> None:
        self.environment_dir, self.environment_name, self.session_id = environment_dir, environment_name, session_id
        self.trial_paths, self.task_env_config, self.default_user = trial_paths, task_env_config, None
        self._mounts = mounts or []
        assert self.capabilities.disable_internet
        self._validate_definition()

    def _mount_targets(self, *, writable_only: bool = False) -> list[str]:
        return [each["target"] for each in self._mounts if not (writable_only and each.get("read_only"))]

    def _merge_env(self, env: dict[str, str] | None) -> dict[str, str] | None:
        return env

    def _resolve_user(self, user: str | int | None) -> str | int | None:
        return user if user is not None else self.default_user

    @staticmethod
    @abstractmethod
    def type() -> str: ...

    @property
    @abstractmethod
    def capabilities(self) -> EnvironmentCapabilities: ...

    @abstractmethod
    def _validate_definition(self) -> None: ...

    @abstractmethod
    async def start(self, force_build: bool) -> None: ...

    @abstractmethod
    async def stop(self, delete: bool) -> None: ...

    @abstractmethod
    async def upload_file(self, source_path: Path | str, target_path: str) -> None: ...

    @abstractmethod
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None: ...

    @abstractmethod
    async def download_file(self, source_path: str, target_path: Path | str) -> None: ...

    @abstractmethod
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None: ...

    @abstractmethod
    async def exec(self, command: str, cwd: str | None = None) -> HarborExecResult: ...


def test_harbor_environment_begins_with_files_and_moves_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug = modules(
        monkeypatch,
        "harbor_environment",
        harbor__environments__base={"BaseEnvironment": BaseEnvironment, "ExecResult": HarborExecResult},
        harbor__environments__capabilities={"EnvironmentCapabilities": EnvironmentCapabilities},
        harbor__models__task__config={"EnvironmentConfig": EnvironmentConfig},
        harbor__models__trial__paths={"TrialPaths": TrialPaths},
    )
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").write_text("a")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "t.sh").write_text("echo tested")

    async def run() -> None:
        config = import_module("harbor.models.task.config").EnvironmentConfig
        paths = import_module("harbor.models.trial.paths").TrialPaths(tmp_path / "trial")
        about: dict[str, Any] = {
            "environment_dir": tmp_path,
            "environment_name": "n",
            "session_id": "s",
            "trial_paths": paths,
        }
        with pytest.raises(ValueError, match="image"):
            plug.HandrailEnvironment(**about, task_env_config=config(docker_image="debian"))
        about["task_env_config"] = config()
        logs = [{"type": "bind", "source": str(tmp_path), "target": "/logs/agent"}]
        with pytest.raises(RuntimeError, match="name them under `writable`"):
            await plug.HandrailEnvironment(**about, mounts=logs, fleet=OPTIONS).start(force_build=False)
        made = plug.HandrailEnvironment(**about, fleet=OPTIONS)
        await made.start(force_build=False)
        assert (await made.exec("cat a; echo $X", env={"X": "x"})).stdout == "ax\n"
        assert (await made.exec("sleep 9", timeout_sec=1)).return_code == 124
        await made.upload_dir(tmp_path / "tests", "/tmp/tests")
        assert (await made.exec("sh /tmp/tests/t.sh")).stdout == "tested\n"
        await made.download_dir("/tmp/tests", tmp_path / "back")
        assert (tmp_path / "back" / "t.sh").exists()
        await made.stop(delete=True)
        with pytest.raises(RuntimeError, match="not started"):
            await made.exec("true")

    asyncio.run(run())


# ── OpenHands ──


class CommandResult(BaseModel):
    command: str
    exit_code: int
    stdout: str
    stderr: str
    timeout_occurred: bool


class FileOperationResult(BaseModel):
    success: bool
    source_path: str
    destination_path: str
    file_size: int | None = None
    error: str | None = None


class GitChangeStatus(enum.Enum):
    MOVED = "MOVED"
    ADDED = "ADDED"
    DELETED = "DELETED"
    UPDATED = "UPDATED"


class GitChange(BaseModel):
    status: GitChangeStatus
    path: Path


class GitDiff(BaseModel):
    modified: str | None
    original: str | None


class BaseWorkspace(BaseModel, ABC):
    working_dir: str

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    @abstractmethod
    def execute_command(self, command: str, cwd: str | Path | None = None, timeout: float = 30.0) -> CommandResult: ...

    @abstractmethod
    def file_upload(self, source_path: str | Path, destination_path: str | Path) -> FileOperationResult: ...

    @abstractmethod
    def file_download(self, source_path: str | Path, destination_path: str | Path) -> FileOperationResult: ...

    @abstractmethod
    def git_changes(self, path: str | Path) -> list[GitChange]: ...

    @abstractmethod
    def git_diff(self, path: str | Path) -> GitDiff: ...


def openhands_plug(monkeypatch: pytest.MonkeyPatch) -> Any:
    return modules(
        monkeypatch,
        "openhands_workspace",
        openhands__sdk__git__models={"GitChange": GitChange, "GitChangeStatus": GitChangeStatus, "GitDiff": GitDiff},
        openhands__sdk__workspace__base={"BaseWorkspace": BaseWorkspace},
        openhands__sdk__workspace__models={"CommandResult": CommandResult, "FileOperationResult": FileOperationResult},
    )


def test_openhands_workspace_runs_commands_and_reads_git(
    tree: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug = openhands_plug(monkeypatch)
    git = import_module("openhands.sdk.git.models")
    (tmp_path / "up").write_text("up")
    with plug.HandrailWorkspace(tree=tree, fleet=OPTIONS) as ws:
        commit = "git init -q; git add -A; git -c user.name=n -c user.email=e commit -qm first"
        assert ws.execute_command(commit).exit_code == 0
        edit = "echo two >> a.txt; git rm -q calc.py; echo new > new"
        changed = ws.execute_command(f"{edit}; echo out; echo err >&2; exit 5")
        assert (changed.exit_code, changed.stdout, changed.stderr) == (5, "out\n", "err\n")
        found = {str(each.path): each.status for each in ws.git_changes(".")}
        wanted = {"a.txt": "UPDATED", "calc.py": "DELETED", "new": "ADDED"}
        assert found == {name: git.GitChangeStatus[status] for name, status in wanted.items()}
        assert ws.git_diff("a.txt") == git.GitDiff(modified="one\ntwo\n", original="one\n")
        assert ws.git_diff("new") == git.GitDiff(modified="new\n", original=None)
        assert ws.execute_command("sleep 9", timeout=0.3).timeout_occurred
        assert ws.file_upload(tmp_path / "up", "in/up").success
        assert ws.file_download("in/up", tmp_path / "down").file_size == 2
        assert (tmp_path / "down").read_text() == "up"


def test_nemo_gym_and_openhands_example_of_documents_runs(
    tree: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = [each for each in fences("docs/fleet.md", "python") if "HandrailProvider(" in each]
    nemo_gym_plug(monkeypatch)
    openhands_plug(monkeypatch)
    exec(code.replace("/path/to/project", tree), {})
    assert capsys.readouterr().out.count("calc.py") == 2
