"""Fills a workspace with protected files and checks that a call refuses them."""

import json
from pathlib import Path
from typing import Any

from handrail import Workspace

SECRET = "TOKEN=hunter2"
RULES = [".env", "*.key", "/conf/private.txt", "vault/"]


def grow(root: Path) -> None:
    for name in (".env", "sub/.env", "id.key", "conf/private.txt", "vault/deep/x.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{SECRET}\n")
    (root / "open.txt").write_text("TOKEN is elsewhere\n")
    (root / "conf/public.txt").write_text("fine\n")


def refused(workspace: Workspace, dialect: str, tool: str, params: dict[str, Any], rule: str) -> None:
    result = workspace.call(dialect, tool, params)
    assert result.error is not None, result
    assert result.error.code == "protected_file", result.error
    assert f"is protected by the rule '{rule}'" in result.error.message
    assert result.error.suggestion == "Continue without this file; only the user can remove the protection"
    assert SECRET not in json.dumps(result.to_dict())
