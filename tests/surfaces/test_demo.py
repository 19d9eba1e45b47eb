"""`handrail demo`: worth seeing in a terminal, plain in a pipe, and gone afterwards."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from command import ARGV, handrail
from terminal import Terminal


def test_the_demo_is_plain_in_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = handrail("demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert '→ file.read {"path": "../../../../etc/shadow"}\n✗ Path' in done.stdout
    assert "  -    return sum(prices) * VAT\n  +    return sum(prices) * (1 + VAT)\n" in done.stdout
    assert re.search(r"\n  Approve\? \(y/n/always\): y\n✓ file\.patch\n", done.stdout)
    assert re.search(
        r"\n  Approve\? \(y/n/always\): n\n✗ file\.delete was not approved: the person said no\n", done.stdout
    )
    assert not list(tmp_path.iterdir())


def test_the_demo_is_coloured_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    with Terminal("/bin/sh", "-c", 'exec "$@" >&2', "sh", *ARGV, "demo") as terminal:
        status, _, shown = terminal.finish()
    assert status == 0
    assert "\x1b[32m" in shown


def test_the_demo_can_be_drawn_into_a_picture_that_fetches_nothing(tmp_path: Path) -> None:
    done = handrail("demo", "--svg", str(tmp_path / "demo.svg"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    picture = (tmp_path / "demo.svg").read_text()
    assert ET.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
    assert "file.patch" in picture
    assert not re.search(r"@font-face|@import|url\((?!#)|href=[\"'](?!#)", picture)
