"""Tests the mount namespace in which ripgrep runs: what it shows, and how the search goes on without it."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.search_trees import Open
from support.searchers import searcher_of, stays_in_namespace

from handrail.kernel.sandbox import find_bwrap
from handrail.kernel.sandbox.helpers import landlock_exec, namespace_exec
from handrail.kernel.sandbox.helpers.namespace_exec import InNamespace, NoNamespace
from handrail.kernel.search import ripgrep
from handrail.kernel.search.rg_process import program
from handrail.kernel.search.ripgrep import Ripgrep
from handrail.kernel.search.searcher import Searcher
from handrail.ops.search.scope import SearchRequest

Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture(params=["as the user", "as an ordinary user"])
def run(tree: Open, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs ripgrep in a namespace with a tree, and returns its status and what it says."""
    searcher_of("namespace")  # skips where there is none
    if request.param == "as an ordinary user":  # who needs a user namespace, too
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    rg, bwrap = program(), find_bwrap.candidates(os.devnull)[0]
    assert rg is not None

    def ran(*words: str, fd: int | None = None) -> tuple[int, list[str]]:
        reading, writing = os.pipe()
        place = tree({"a": b"hit\n"}) if fd is None else fd
        process = namespace_exec.start(bwrap, [rg, "--no-config", *words], place, stdout=writing, stderr=writing)
        os.close(writing)
        try:
            with open(reading, "rb") as output:
                said = output.read().decode()
            return process.wait(), sorted(said.splitlines())
        finally:
            process.kill()
            process.close()

    return ran


def test_program_in_namespace_sees_only_the_tree(run: Run, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hit")
    status, said = run("-c", "hit", "a", "../secret", "/etc/passwd", "/proc/self/environ", str(tmp_path / "secret"))
    assert status == 2
    assert said[0] == "a:1"
    assert all("No such file or directory" in line for line in said[1:])
    assert run("--files", "--no-messages", "--hidden", "--no-ignore", "/")[1] == ["/program", "/tree/a"]


def test_link_out_of_the_tree_leads_nowhere_in_namespace(run: Run, tree: Open, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hit")
    fd = tree({"a": b"hit\n"})
    os.symlink(tmp_path / "secret", "link", dir_fd=fd)
    os.symlink("../../secret", "climbing", dir_fd=fd)
    assert run("-c", "--follow", "--no-messages", "hit", ".", fd=fd)[1] == ["./a:1"]


def test_removed_directory_has_no_namespace(run: Run, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    fd = os.open(tmp_path / "gone", os.O_RDONLY)
    (tmp_path / "gone").rmdir()
    try:
        with pytest.raises(NoNamespace):
            run("hit", ".", fd=fd)
    finally:
        os.close(fd)


def test_long_search_moves_later_ones_into_a_namespace(tree: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    searcher_of("namespace")
    started: list[InNamespace] = []
    start = namespace_exec.start

    def noted(*arguments: Any, **options: Any) -> InNamespace:
        started.append(start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(namespace_exec, "start", noted)
    monkeypatch.setattr(ripgrep, "_LONG_SECONDS", 0)
    searcher, fd = Searcher(), tree({"a": b"hit"})
    results = [searcher.search(fd, SearchRequest("hit")) for _ in range(2)]
    assert results[0] == results[1]
    assert len(started) == 1
    assert stays_in_namespace(searcher)


def test_search_goes_on_under_landlock_if_there_is_no_namespace(tree: Open, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    searcher, fd = Searcher(engine="ripgrep"), tree({"a": b"hit"})
    if not isinstance(searcher.engine, Ripgrep):
        pytest.skip("no ripgrep here")
    searcher.engine.in_namespace = True
    searcher.engine._bwrap = str(broken)
    for _ in range(2):
        assert searcher.search(fd, SearchRequest("hit")).total == 1
    assert not stays_in_namespace(searcher)


def test_bwrap_in_workspace_makes_no_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = tmp_path / "bwrap"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.setattr(find_bwrap, "SYSTEM_PLACES", (str(planted),))
    monkeypatch.setattr(find_bwrap, "_packaged", list)
    searcher = Searcher(engine="ripgrep", workspace=str(tmp_path))
    if not isinstance(searcher.engine, Ripgrep):
        pytest.skip("no ripgrep here")
    assert searcher.engine._bwrap is None


@pytest.mark.skipif(landlock_exec.abi() < 6, reason="Landlock forbids signals from ABI 6 on")
def test_namespace_keeps_the_restrictions_that_are_not_about_files(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    fd = os.open(tmp_path, os.O_RDONLY)
    with subprocess.Popen(["sleep", "60"]) as victim:
        try:
            shell = ["/bin/sh", "-c", f"echo written > file; kill -0 {victim.pid} && echo reached; echo ended"]
            process = landlock_exec.start(shell, fd, stdout=writing, stderr=2, files=False)
            os.close(writing)
            with open(reading, "rb") as output:
                said = output.read()
            process.wait()
        finally:
            victim.kill()
            os.close(fd)
    assert said == b"ended\n"
    assert (tmp_path / "file").read_text() == "written\n"
