"""Tests that the linter rejects access to the machine outside the kernel."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent.parent
WAYS = """
with open("a") as file: file.read()
import os
import os.path
from os import remove
import io
import pathlib
import shutil
import glob
import tempfile
import posix
import ctypes
import fcntl
import mmap
import codecs; codecs.open("a")
import fileinput
import linecache
import sqlite3
import tarfile
import zipfile
import subprocess
import multiprocessing
import asyncio; asyncio.create_subprocess_exec("a")
import asyncio; asyncio.create_subprocess_shell("a")
import asyncio; asyncio.open_connection("a", 1)
import socket
import http.client
import urllib.request
""".strip()


@pytest.mark.parametrize(
    ("room", "refused"), [("dialects", True), ("ops", True), ("surfaces", True), ("kernel", False)]
)
def test_linter_bans_machine_access_outside_kernel(room: str, refused: bool) -> None:
    name = str(HOME / "src" / "handrail" / room / "probe.py")
    argv = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--output-format",
        "json",
        "--no-cache",
        "--stdin-filename",
        name,
        "-",
    ]
    done = subprocess.run(argv, input=WAYS, capture_output=True, text=True, check=False, cwd=HOME)
    found = {each["location"]["row"] for each in json.loads(done.stdout) if each["code"] in ("TID251", "PTH123")}
    assert found == ({*range(1, len(WAYS.split("\n")) + 1)} if refused else set())
