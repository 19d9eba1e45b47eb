"""Checks that only its own process shows the text of a command: other users can read every argument list."""

import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.sandboxes import await_word, has_bubblewrap, running, said, sh, workspace

from handrail.kernel.process.runner import Command, Processes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no strict level here")
    root = tmp_path / "ws"
    root.mkdir()
    for name in ("started", "go"):
        os.mkfifo(root / name)
    return root


def environments_with(marker: str) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if marker.encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
        except OSError:  # the process ended, or belongs to another user
            continue
    return found


def test_first_command_text_is_visible_only_in_its_own_process(root: Path) -> None:
    secret = secrets.token_hex()
    text = f"echo > started; read line < go; : {secret}"
    with ThreadPoolExecutor() as pool, workspace(root) as processes:
        run = pool.submit(sh, processes, text)
        await_word(root / "started")
        names = [Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0] for pid in running(secret)]
        assert names == [b"/bin/bash"]
        (root / "go").write_text("\n")
        assert run.result().exit_code == 0
        assert (running(secret), environments_with(secret)) == ([], [])
        assert sh(processes, "true").restarted is False


def first_words(processes: Processes, *given: str) -> str:
    return said(processes.run(Command(["/usr/bin/printf", "<%s>", *given])))


@pytest.mark.parametrize(
    "given",
    [
        ["'", '"', "$(id)", "`id`", "$HOME", "\\", "\n", "", " ", "*", "~", "-n", "a\tb", "é", "\udcff"],
        ["'" * 20_000, "x"],
        ["é" * 20_000],
    ],
    ids=["odd", "many quotes", "many letters"],
)
def test_first_command_receives_its_arguments_unchanged(root: Path, given: list[str]) -> None:
    wanted = "".join(f"<{word}>" for word in given)
    with workspace(root) as processes:
        assert first_words(processes, *given) == os.fsencode(wanted).decode(errors="replace")
        assert processes.sandbox.start().level == "strict"


def test_first_command_sees_same_variables_as_second(root: Path) -> None:
    with workspace(root) as processes:
        first, second = (sh(processes, "exec env | sort").stdout.head for _ in range(2))
    assert first == second
    assert first
