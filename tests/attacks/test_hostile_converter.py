"""Lets a page take over the HTML converter: it reaches no file, network or process; time and memory are limited.

`hostile_converter/` replaces the real converter, and the tests start it as a fetch does.
"""

import json
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.deadline import Deadline, DeadlineExceeded
from handrail.kernel.sandbox.helpers import landlock_exec
from handrail.kernel.sandbox.seccomp import ARCHES
from handrail.kernel.web import html_worker
from handrail.kernel.web.markdown import NotConverted, to_markdown
from handrail.model.limits import Limits

PLENTY, BRIEF = 60.0, 1.0
FILTERED = sys.platform == "linux" and platform.machine() in ARCHES and landlock_exec.can_filter()
NEEDS_A_FILTER = pytest.mark.skipif(not FILTERED, reason="no filter of system calls here")
REFUSED = {"EPERM", "EACCES", "EMFILE", "ENOMEM", "EBADF", "MemoryError", "ValueError", "EFBIG"}


@pytest.fixture(autouse=True)
def hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).with_name("hostile_converter")))


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def convert(seconds: float = PLENTY, **order: Any) -> str:
    return to_markdown(json.dumps(order), "http://page.test/", Deadline(seconds), Limits())[0]


def test_hostile_converter_replaces_real_one_in_these_tests() -> None:
    page = "no order"
    assert to_markdown(page, "http://page.test/", Deadline(PLENTY), Limits()) == (page, False)


def test_worker_finds_handrail_without_an_installation() -> None:
    argv = [sys.executable, "-S", "-P", html_worker.__file__, "http://page.test/", str(1 << 30), "30", "100", ""]
    done = subprocess.run(argv, input=b"a page", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"a page")


@NEEDS_A_FILTER
def test_hostile_converter_reaches_no_file_network_or_process(tmp_path: Path, port: int) -> None:
    precious, file = tmp_path / "precious", tmp_path / "made"
    precious.write_text("x")
    mode = precious.stat().st_mode
    outcomes = json.loads(convert(attempt="everything", port=port, precious=str(precious), file=str(file)))
    assert len(outcomes) > 25
    assert {name: found for name, found in outcomes.items() if found not in REFUSED} == {}
    assert (precious.read_text(), precious.stat().st_mode, file.exists()) == ("x", mode, False)


def test_hostile_converter_sees_no_variable_of_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "precious")
    assert "precious" not in convert(attempt="secrets")


@pytest.mark.parametrize("way", ["run", "sleep", "write"])
def test_endless_converter_is_stopped(way: str) -> None:
    with pytest.raises((DeadlineExceeded, NotConverted)):
        convert(BRIEF, attempt=way)


@pytest.mark.skipif(not landlock_exec.available(), reason="no Landlock here")
def test_hostile_converter_without_filter_reaches_no_file_or_port(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.kernel.sandbox.helpers.confined_worker.assemble_for_computing", lambda _: b"")
    precious, file = tmp_path / "precious", tmp_path / "made"
    precious.write_text("x")
    outcomes = json.loads(convert(attempt="everything", port=port, precious=str(precious), file=str(file)))
    names = ["read a file", "list a directory", "write a file", "remove a file", "make a directory", "connect"]
    assert {name: outcomes[name] for name in names if outcomes[name] not in REFUSED} == {}
