"""Runs the writer on a disk that is really full, and on one that is really read-only.

python mounted.py DIRECTORY prints the answers as JSON. Run it in its own mount namespace, with a small tmpfs on
DIRECTORY.
"""

import json
import os
import subprocess
import sys
from typing import Any

from support.tree import snapshot

from handrail import Workspace


def code(workspace: Workspace, tool: str, **params: Any) -> str:
    error = workspace.call("file", tool, params).error
    return error.code if error else "ok"


def fill(path: str) -> None:
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            return


def attempts(workspace: Workspace, name: str) -> dict[str, str]:
    much = name * 50_000
    return {
        "create": code(workspace, "file.write", path=f"{name}.txt", content=much),
        "create deep": code(workspace, "file.write", path=f"{name}/b/new.txt", content=much),
        "patch": code(workspace, "file.patch", path="file.txt", patches=[{"find": "old", "replace": much}]),
        "replace": code(workspace, "file.write", path="file.txt", content=f"old {much}"),
    }


def answers(workspace: Workspace) -> dict[str, str]:
    """Return the error of each dialect for a change of an existing file."""
    replaced = {"old_string": "old", "new_string": "new"}
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "file": ("file.write", {"path": "file.txt", "content": "new"}),
        "gemini": ("replace", {"file_path": f"{workspace.root}/file.txt", **replaced}),
        "context": ("replace_in_file", {"path": "file.txt", "find": "old", "replace": "new", "terminate": False}),
        "copilot": ("replace_string_in_file", {"path": "file.txt", **replaced}),
        "codex": ("apply_patch_json", {"patch": "*** Begin Patch\n*** Delete File: file.txt\n*** End Patch\n"}),
    }
    errors = {dialect: workspace.call(dialect, *call).error for dialect, call in calls.items()}
    return {dialect: error.message.rpartition(": ")[2] if error else "ok" for dialect, error in errors.items()}


def main(directory: str) -> dict[str, Any]:
    with open(f"{directory}/file.txt", "w") as file:
        file.write("old\n")
    found: dict[str, Any] = {}
    fill(f"{directory}/filler")
    before = snapshot(directory)
    with Workspace(directory, approve="auto") as workspace:
        found["full"] = attempts(workspace, "x")
        found["full, tree kept"] = snapshot(directory) == before
        found["full, delete"] = code(workspace, "file.delete", path="filler")
        found["room again"] = attempts(workspace, "y")
    before = snapshot(directory)
    subprocess.run(["mount", "-o", "remount,bind,ro", directory], check=True)
    with Workspace(directory, approve="auto") as workspace:
        found["read-only"] = {**attempts(workspace, "z"), "delete": code(workspace, "file.delete", path="file.txt")}
        found["read-only, answers"] = answers(workspace)
        found["read-only, read"] = code(workspace, "file.read", path="file.txt")
    found["read-only, records"] = os.listdir(workspace._services.state.pending)
    with Workspace(directory, approve="auto") as workspace:
        found["read-only, notes"] = workspace.warnings
    found["read-only, tree kept"] = snapshot(directory) == before
    found["left"] = [name for name in os.listdir(directory) if name.startswith(".handrail")]
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
