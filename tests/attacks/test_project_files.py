"""Tries slow or endless project files: the workspace refuses to open at once, and the error names the file."""

import os
from pathlib import Path

import pytest

from handrail import Workspace
from handrail.errors import SettingsError


def refusal(root: Path) -> str:
    with pytest.raises(SettingsError) as caught:
        Workspace(str(root))
    return str(caught.value)


@pytest.mark.parametrize("name", [".handrail.toml", ".handrailignore"])
def test_huge_project_file_is_refused(root: Path, name: str) -> None:
    with (root / name).open("wb") as file:
        file.truncate(3 << 30)
    assert refusal(root) == f"{name} cannot be read: '{name}' has {3 << 30} bytes, more than the limit of 65536"


@pytest.mark.parametrize("name", [".handrail.toml", ".handrailignore"])
def test_project_file_that_is_a_fifo_is_refused(root: Path, name: str) -> None:
    os.mkfifo(root / name)
    assert refusal(root) == f"{name} cannot be read: '{name}' is a FIFO, not a regular file"


@pytest.mark.parametrize(
    "text",
    [
        f"limits{'.a' * 30_000} = 1\n",
        f"limits{' . a' * 15_000} = 1\n",
        "limits" + '."a"' * 15_000 + " = 1\n",
        f"[limits{'.a' * 30_000}]\n",
        f"limits = {{ a{'.a' * 30_000} = 1 }}\n",
    ],
)
def test_toml_key_with_thousands_of_parts_is_refused_unparsed(
    root: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr("tomllib.loads", None)
    (root / ".handrail.toml").write_text(text)
    assert refusal(root) == ".handrail.toml: not valid TOML: it is nested too deeply"


MANY = [f"q{number}" for number in range(2001)]


@pytest.mark.parametrize("text", ["\n".join(MANY), "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}\n" * 5])
def test_too_many_project_globs_are_refused_uncompiled(root: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("handrail.settings.protection", None)
    (root / ".handrailignore").write_text(text)
    assert refusal(root) == ".handrailignore: more than 2000 globs to protect"
    (root / ".handrailignore").unlink()
    (root / ".handrail.toml").write_text(f"protect = {text.split()}\n")
    assert refusal(root) == ".handrail.toml: more than 2000 globs to protect"


def test_user_limits_can_allow_larger_project_files(root: Path) -> None:
    (root / ".handrailignore").write_text("\n".join(MANY))
    with Workspace(str(root), limits={"protect_globs": 2001}) as workspace:
        assert len(workspace.settings.protect) == 2001
    (root / ".handrailignore").write_text("#" * 65537)
    with Workspace(str(root), limits={"project_file_bytes": 65537}):
        pass


def test_user_configuration_that_is_a_fifo_is_refused(root: Path) -> None:
    config = Path(os.environ["HANDRAIL_CONFIG_DIR"])
    config.mkdir(parents=True)
    os.mkfifo(config / "config.toml")
    assert refusal(root).endswith("it is not a regular file")
