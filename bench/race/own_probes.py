"""What only Handrail is asked: whether anything gets out of the workspace, or stays behind."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.patch import own_homes
from handrail import Workspace

GOOD, BAD = "✓", "✗"


def own_probes() -> dict[str, str]:
    answers = {}
    for name, probe in PROBES.items():
        with tempfile.TemporaryDirectory(prefix="bench-") as base, own_homes():
            root = Path(base, "root")
            root.mkdir()
            with Workspace(str(root), approve="auto") as workspace:
                answers[name] = GOOD if probe(workspace, root, Path(base)) else BAD
    return answers


def dangling(workspace: Workspace, root: Path, base: Path) -> bool:
    (root / "link").symlink_to(base / "outside")
    result = workspace.call("file", "file.write", {"path": "link", "content": "x"})
    return not result.success and not (base / "outside").exists()


def linked(workspace: Workspace, root: Path, base: Path) -> bool:
    (root / "target").write_text("one\n")
    (root / "link").symlink_to("target")
    edit = {"path": "link", "patches": [{"find": "one", "replace": "1"}]}
    done = workspace.call("file", "file.patch", edit).success
    return done and (root / "link").is_symlink() and (root / "target").read_text() == "1\n"


def descendants(workspace: Workspace, root: Path, base: Path) -> bool:
    mark = f"{time.time_ns() % 10**6 + 10**6}"
    command = f"(setsid sleep {mark} & ) ; sleep {mark}"
    result = workspace.call("codex", "shell", {"command": command, "timeout_ms": 500})
    assert isinstance(result.output, dict)
    return bool(result.output["timeout"]) and not _running(mark)


def _running(mark: str) -> bool:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if mark.encode() in Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0"):
                    return True
            except OSError:
                continue
    return False


def outside(workspace: Workspace, root: Path, base: Path) -> bool:
    workspace.call("codex", "shell", {"command": f"echo x > {base}/outside; echo x > inside"})
    return not (base / "outside").exists() and (root / "inside").exists()


def limits(workspace: Workspace, root: Path, base: Path) -> bool:
    for number in range(5):
        (root / f"f{number}").write_text("word\n" * 5)
    result = workspace.call("file", "file.search", {"pattern": "word", "max_results": 7})
    assert isinstance(result.output, dict)
    return len(result.output["matches"]) == 7 and bool(result.output["truncated"])


PROBES: dict[str, Callable[[Workspace, Path, Path], bool]] = {
    "a write through a dangling link that points outside is refused": dangling,
    "an edit through a link inside changes its target, and the link stays a link": linked,
    "a command that runs out of time leaves no descendant alive": descendants,
    "a command cannot write outside the workspace": outside,
    "a limit of results holds for all files together, and what is cut is said": limits,
}
