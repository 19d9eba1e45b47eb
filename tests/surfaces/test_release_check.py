"""Tests that `make release-check` passes for this tree and names what is broken in another one."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.documents import names, section, table

HOME = Path(__file__).parent.parent.parent
Break = Callable[[Path], object]


def check(home: Path, *chosen: str) -> tuple[int, list[str]]:
    command = [sys.executable, str(HOME / "packaging" / "release_check.py"), "--home", str(home), *chosen]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Copy the files of a release."""
    left_out = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "bench", "build", "dist", "tests")
    return shutil.copytree(HOME, tmp_path / "tree", ignore=left_out)


def replace(name: str, old: str, new: str) -> Break:
    def change(tree: Path) -> None:
        text = (tree / name).read_text()
        assert old in text
        (tree / name).write_text(text.replace(old, new))

    return change


BROKEN: dict[str, tuple[str, Break, str]] = {
    "version of the package": ("versions", replace("src/handrail/__init__.py", "0.1.0", "0.1.1"), "says 0.1.1"),
    "version of the server": ("versions", replace("server.json", '"version": "0.1.0"', '"version": "0.2"'), "says 0.2"),
    "version of the bundle": (
        "versions",
        replace("packaging/mcpb/manifest.json", "0.1.0", "1"),
        "manifest.json says 1",
    ),
    "no section": ("changelog", replace("CHANGELOG.md", "## 0.1.0", "## 0.0.9"), "no section '## 0.1.0'"),
    "longer version": ("changelog", replace("CHANGELOG.md", "## 0.1.0", "## 0.1.01"), "no section '## 0.1.0'"),
    "empty section": (
        "changelog",
        lambda tree: (tree / "CHANGELOG.md").write_text("\n## 0.1.0\n\n## 0.0.9\n\n- x\n"),
        "empty",
    ),
    "name of the server": ("server_name", replace("README.md", "mcp-name", "name"), "has no comment 'mcp-name"),
    "dead link": ("readme", lambda tree: (tree / "docs/settings.md").unlink(), "links to docs/settings.md"),
    "open code block": ("readme", replace("README.md", "\n## ", "\n```sh\n## "), "does not end"),
    "empty licence": ("licences", lambda tree: (tree / "LICENSE").write_text(""), "LICENSE is empty"),
    "no licence": ("licences", lambda tree: (tree / "LICENSE").unlink(), "FileNotFoundError"),
    "unlicensed package": ("licences", replace("pyproject.toml", '"click>=8.1"', '"unlicensed"'), "file: unlicensed"),
    "unknown package": ("licences", replace("pyproject.toml", '"click>=8.1"', '"no-such-package"'), "no-such-package"),
    "stray file": ("wheel", lambda tree: (tree / "src/handrail/a.orig").write_text(""), "expected: handrail/a.orig"),
    "module left out": (
        "wheel",
        replace("pyproject.toml", 'packages = ["src/handrail"]', 'packages = ["src/handrail"]\nexclude = ["tool.py"]'),
        "missing: handrail/tools/tool.py",
    ),
    "not typed": ("wheel", lambda tree: (tree / "src/handrail/py.typed").unlink(), "missing: handrail/py.typed"),
    "licence left out": (
        "wheel",
        replace("pyproject.toml", 'license-files = ["LICENSE"]', "license-files = []"),
        "licenses/LICENSE",
    ),
    "no build": ("wheel", lambda tree: (tree / "README.md").unlink(), "it cannot be built"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_release_check_names_broken_part(name: str, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tree / "site" / "unlicensed-1.dist-info"
    bare.mkdir(parents=True)
    (bare / "METADATA").write_text("Metadata-Version: 2.1\nName: unlicensed\nVersion: 1\n")
    (bare / "RECORD").write_text("unlicensed/license.py,,\n")
    monkeypatch.setenv("PYTHONPATH", str(bare.parent))
    failing, act, says = BROKEN[name]
    act(tree)
    status, (line,) = check(tree, failing)
    assert status == 1
    assert line.startswith(f"FAIL  {failing}: ")
    assert says in line


def test_release_check_continues_after_failure(tree: Path) -> None:
    (tree / "LICENSE").write_text("")
    status, lines = check(tree)
    assert status == 1
    assert [line.partition(":")[0].split() for line in lines] == [
        ["ok", "versions"],
        ["ok", "changelog"],
        ["ok", "server_name"],
        ["ok", "readme"],
        ["FAIL", "licences"],
        ["ok", "wheel"],
    ]


def test_release_check_passes_for_this_tree() -> None:
    status, lines = check(HOME)
    listed = [name for row in table(section("CONTRIBUTING.md", "Releasing")) for name in names(row[0])]
    assert (status, [line.partition(":")[0] for line in lines]) == (0, [f"ok    {name}" for name in listed])
