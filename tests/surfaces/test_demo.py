"""Tests `handrail demo`: coloured at a terminal, plain in a pipe, leaves no files. The README shows its picture."""

import html
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from support.command_line import ARGV, handrail
from support.pseudo_terminal import Terminal

HOME = Path(__file__).parent.parent.parent
PICTURE = (HOME / "docs" / "demo.svg").read_text()


def test_demo_in_a_pipe_is_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = handrail("demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert '→ file.read {"path": "../../etc/shadow"}\n✗ Path' in done.stdout
    assert "  -    return sum(prices) * vat\n  +    return sum(prices) * (1 + vat)\n" in done.stdout
    assert "\n  Approve? (y/n/s/a/e): y\n✓ file.patch\n" in done.stdout
    assert "\n  Approve? (y/n/s/a/e): n\n✗ delete_file was not approved: the user said no\n" in done.stdout
    assert not list(tmp_path.iterdir())


def test_demo_is_short_and_prints_no_empty_values() -> None:
    lines = handrail("demo").stdout.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100
    assert not [line for line in lines if re.search(r"\b(null|false|None|False)\b|\[\]", line)]


def test_demo_in_a_terminal_is_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    with Terminal("/bin/sh", "-c", 'exec "$@" >&2', "sh", *ARGV, "demo") as terminal:
        status, _, shown = terminal.finish()
    assert status == 0
    assert "\x1b[32m" in shown


def test_picture_matches_demo(tmp_path: Path) -> None:
    drawn = tmp_path / "demo.svg"
    subprocess.run([sys.executable, HOME / "packaging" / "demo_svg.py", drawn], check=True)
    assert drawn.read_text() == PICTURE, "make picture draws it again"


def test_picture_shows_every_line_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "C.UTF-8")
    shown = [
        html.unescape(each).replace("\xa0", " ").rstrip() for each in re.findall(r"<text [^>]*>(.*?)</text>", PICTURE)
    ]
    for line in filter(None, handrail("demo").stdout.splitlines()):
        assert line in shown


def test_picture_fetches_nothing() -> None:
    assert ET.fromstring(PICTURE).tag == "{http://www.w3.org/2000/svg}svg"
    assert not re.search(r"@font-face|@import|url\((?!#)|href=[\"'](?!#)", PICTURE)
