"""Checks that answers name the limits in force, not the default limits."""

from pathlib import Path

import pytest

from handrail import Workspace
from handrail.ops.text.display import size_text


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1536, "1.5KB"),
        (1024**2, "1MB"),
        (20 * 1024**2, "20MB"),
        (3 * 1024**3, "3072MB"),
    ],
)
def test_size_text_uses_the_largest_unit_that_fits(size: int, shown: str) -> None:
    assert size_text(size) == shown


@pytest.mark.parametrize(
    ("limit", "shown", "size"),
    [(1000, "1000 bytes", "2.93KB"), (2048, "2KB", "2.93KB"), (2_097_152, "2MB", "2.86MB")],
)
def test_gemini_read_file_names_the_limit_in_force(root: Path, limit: int, shown: str, size: str) -> None:
    (root / "big").write_bytes(b"x" * (3_000_000 if limit > 3000 else 3000))
    with Workspace(str(root), limits={"gemini_read_bytes": limit}) as workspace:
        result = workspace.call("gemini", "read_file", {"absolute_path": f"{root}/big"})
    assert result.output == (f"Error reading file {root}/big: File size exceeds the {shown} limit: {root}/big ({size})")


@pytest.mark.parametrize(("limit", "shown"), [(1000, "1000 bytes"), (1536, "1.5KB"), (1_048_576, "1MB")])
def test_copilot_files_name_the_limit_in_force(root: Path, limit: int, shown: str) -> None:
    (root / "big").write_bytes(b"line\n" * (limit // 4))
    with Workspace(str(root), approve="auto", limits={"copilot_bytes": limit}) as workspace:
        read = workspace.call("copilot", "read_file", {"path": "big"})
        created = workspace.call("copilot", "create_file", {"path": "new", "content": "x" * (limit + 1)})
    assert isinstance(read.output, str)
    assert read.output.startswith(f"Warning: File is larger than {shown}, showing only its beginning\n")
    assert created.output == f"Error: Content for 'new' is larger than {shown}"


def test_gemini_replace_names_the_edit_limit(root: Path) -> None:
    (root / "big").write_bytes(b"x" * 3000)
    with Workspace(str(root), approve="auto", limits={"edit_bytes": 2048}) as workspace:
        params = {"file_path": f"{root}/big", "old_string": "x", "new_string": "y"}
        result = workspace.call("gemini", "replace", params)
    assert isinstance(result.output, str)
    assert "exceeds the 2KB limit" in result.output
