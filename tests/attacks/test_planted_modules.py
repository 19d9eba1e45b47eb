"""Plants modules with the names of Handrail's own modules, or of modules that Handrail imports: none of them runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.kernel.host import client_files

HOME = Path(__file__).parent.parent.parent
OTHERS = ["click", "mcp", "tomllib", "typing", "json", "threading", "hashlib", "resource", "anyio", "difflib"]
COMMANDS = [["tools"], ["config", "cursor"], ["call", "file.list"], ["doctor"]]


def plant(root: Path, names: list[str]) -> Path:
    marker = root.parent / "ran"
    for name in names:
        (root / f"{name}.py").write_text(f"open({str(marker)!r}, 'a').write(__name__)\n")
    return marker


def run(root: Path, argv: list[str]) -> str:
    environment = {**os.environ, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(argv, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_safe_path_keeps_workspace_modules_from_replacing_handrail(root: Path, command: list[str]) -> None:
    marker = plant(root, [*OTHERS, "handrail", "importlib", "runpy"])
    assert run(root, [sys.executable, "-P", "-m", "handrail", *command])
    assert not marker.exists()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_command_without_safe_path_imports_no_workspace_module(root: Path, command: list[str]) -> None:
    marker = plant(root, OTHERS)
    assert run(root, [sys.executable, "-m", "handrail", *command])
    assert not marker.exists()


def test_own_command_for_clients_is_never_a_workspace_program(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("handrail", "python"):
        (root / name).write_text("#!/bin/sh\n")
        (root / name).chmod(0o755)
    elsewhere = root.parent / "bin" / "python"  # a directory without a handrail script
    monkeypatch.setattr(sys, "executable", str(elsewhere))
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    monkeypatch.chdir(root)
    assert client_files.own_command() == [str(elsewhere), "-P", "-m", "handrail"]


def test_manifest_and_documents_start_handrail_with_safe_path() -> None:
    arguments = json.loads((HOME / "packaging/mcpb/manifest.json").read_text())["server"]["mcp_config"]["args"]
    assert arguments[:3] == ["-P", "-m", "handrail"]
    documents = [*HOME.glob("*.md"), *HOME.glob("docs/**/*.md"), HOME / "Dockerfile", HOME / "Makefile"]
    unsafe = re.compile(r"python[\d.]*(?! -P)[^`\n]* -m handrail\b")
    said = [(path.name, line) for path in documents for line in path.read_text().split("\n") if unsafe.search(line)]
    assert [each for each in said if "without `-P`" not in each[1]] == []
