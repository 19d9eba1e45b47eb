import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.hooks import HookWriter, hook_writer

from handrail import Workspace

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")  # no test depends on a quiet machine

_OWN, _RM = pytest.StashKey[str](), shutil.which("rm") or "rm"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background shell; children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return 1.5 workers for each processor, because many tests wait."""
    processors = os.cpu_count() or 1
    return processors + (processors + 1) // 2


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("only root can do this")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give the session a directory of its own. Pytest cannot remove the deep directories that some tests leave."""
    if config.option.basetemp is None and not hasattr(config, "workerinput"):
        config.option.basetemp = config.stash[_OWN] = tempfile.mkdtemp(prefix="pytest-handrail-")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remove the directory of a session in which nothing failed."""
    own = session.config.stash.get(_OWN, None)
    if own is not None and exitstatus == pytest.ExitCode.OK:
        subprocess.run([_RM, "-rf", "--", own], stderr=subprocess.DEVNULL, check=False)


@pytest.fixture(autouse=True)
def own_homes(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the state, settings and current directory of the user; allow commands without a strict sandbox."""
    home = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith("HANDRAIL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HANDRAIL_ALLOW_REDUCED", "true")
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(home / "state"))
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(home / "config"))
    monkeypatch.chdir(home)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def hook(tmp_path: Path) -> HookWriter:
    """Return a function that writes hook programs outside the workspace."""
    return hook_writer(tmp_path / "programs")


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace(str(root), approve="auto") as opened:
        yield opened
