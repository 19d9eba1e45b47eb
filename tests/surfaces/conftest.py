import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.mcp_client import over_http, serve

__all__ = ["serve"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start one server for all tests that change nothing."""
    home, root = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root")
    (root / "a.txt").write_text("one\n")
    with over_http("--root", root, home=home) as (address, _):
        yield address


@pytest.fixture
def client_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of a user of MCP clients; `handrail` is on PATH."""
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return home
