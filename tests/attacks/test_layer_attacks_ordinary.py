"""Makes the attacks on layers, with their commands, as an ordinary user; for root, who makes them as root otherwise."""

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.layers import needs_overlays

import handrail

pytestmark = [needs_overlays, pytest.mark.sandbox, pytest.mark.slow, pytest.mark.root]

USER = 65534
WITH_COMMANDS = "not (ordinary_user or hostile or garbage or gigabyte or longer)"
"""Leaves out snapshots, which test_layer_attacks.py itself opens as an ordinary user, and what takes half a minute."""
PROJECT = Path(__file__).parents[2]
# A directory such as /root hides an interpreter and packages from other users: mounts of this process alone show them.
ENTER = """
set -e
for each in python project source packages; do mount --bind "$1" "$TOP/$each"; shift; done
cd "$TOP/project"
exec setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups "$@"
"""


@pytest.fixture
def top() -> Iterator[Path]:
    """Make a directory that every user can enter, for mounts."""
    with tempfile.TemporaryDirectory(prefix="handrail-ordinary-") as made:
        os.chmod(made, 0o755)
        for name in ("python", "project", "source", "packages"):
            Path(made, name).mkdir()
        Path(made, "tmp").mkdir()
        os.chown(f"{made}/tmp", USER, USER)
        yield Path(made)


def as_user(top: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments as an ordinary user, in the project."""
    base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    python = top / "python" / os.path.relpath(base, os.path.realpath(sys.base_prefix))
    shown = [sys.base_prefix, str(PROJECT), str(Path(handrail.__file__).parents[1]), sysconfig.get_path("purelib")]
    variables = {"PATH": os.defpath, "PYTHONPATH": f"{top}/source:{top}/packages", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", ENTER, "sh", *shown, str(python), *arguments],
        env=variables | {"TOP": str(top), "USER_ID": str(USER), "TMPDIR": f"{top}/tmp"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_attacks_with_commands_fail_for_ordinary_user_too(top: Path) -> None:
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounts are denied here")
    who = as_user(top, "-c", "import os; print(os.getuid())")
    assert who.stdout == f"{USER}\n", who.stderr
    done = as_user(top, "-m", "pytest", "-rs", "tests/attacks/test_layer_attacks.py", "-k", WITH_COMMANDS)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    skipped = [line for line in done.stdout.split("\n") if line.startswith("SKIPPED")]
    assert len(skipped) == 1, done.stdout  # the one attack that root alone can make
