"""Reading, writing and listing against what the system itself takes."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measure import Row, compare, row, show
from handrail import Workspace

HUNDRED_KB = 100_000
CLICK = "import click; click.command()(lambda: None)([])"
IMPORT = "import time; began = time.perf_counter(); import handrail; print((time.perf_counter() - began) * 1000)"


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home:
        root = Path(home, "root")
        root.mkdir()
        os.environ["HANDRAIL_STATE_DIR"] = f"{home}/state"
        os.environ["HANDRAIL_CONFIG_DIR"] = f"{home}/config"
        with Workspace(str(root), approve="auto") as workspace:
            rows = [*_reads(workspace, root), *_writes(workspace, root), *_small_writes(workspace, root)]
            rows += [_listing(workspace, root), *_start(root)]
        with Workspace(str(root), approve="auto", durability="log") as workspace:
            rows += [{**row, "name": f"{row['name']}, durability log"} for row in _small_writes(workspace, root)]
    return [*rows, _page()]


def _reads(workspace: Workspace, root: Path) -> list[Row]:
    path = root / "small.txt"
    path.write_text("".join(f"{n:039}\n" for n in range(102))[:4096])
    name, tools = str(path), workspace.tools("file")

    def plain() -> None:
        with open(name, "rb") as file:
            file.read()

    read = workspace._services.reader.read
    return [
        compare("kernel read of 4 KB / open+read+close", lambda: read("small.txt"), plain, 3, number=500),
        compare(
            "file.read of 4 KB / open+read+close",
            lambda: tools.call("file.read", {"path": "small.txt"}),
            plain,
            10,
            number=300,
        ),
    ]


def _writes(workspace: Workspace, root: Path) -> list[Row]:
    path, temp = root / "big.txt", str(root / "temp")
    lines = [f"line {n:05} {'x' * 87}\n" for n in range(HUNDRED_KB // 99)]
    path.write_text("".join(lines))
    data, name, turn, tools = path.read_bytes(), str(root / "bare.txt"), [0], workspace.tools("file")

    def bare(*, directory: bool = False) -> None:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(fd, data)
        os.fsync(fd)
        os.close(fd)
        os.rename(temp, name)
        if directory:
            fd = os.open(root, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)

    def patch() -> None:
        turn[0] += 1
        old, new = ("line 00500 ", "LINE 00500 ") if turn[0] % 2 else ("LINE 00500 ", "line 00500 ")
        result = tools.call("file.patch", {"path": "big.txt", "patches": [{"find": old, "replace": new}]})
        assert result.success, result

    return [
        compare("file.patch of 100 KB / write+fsync+rename", patch, bare, 2, rounds=40, number=5),
        compare(
            "the same / write+fsync+rename+fsync of directory",
            patch,
            lambda: bare(directory=True),
            2,
            rounds=40,
            number=5,
        ),
    ]


def _small_writes(workspace: Workspace, root: Path) -> list[Row]:
    """A write of 5 KB, and a patch of ten files, against as many writes of the bare system."""
    text, tools, codex, turns = (
        "a line of text to be written\n" * 170,
        workspace.tools("file"),
        workspace.tools("codex"),
        [0, 0],
    )
    for n in range(10):
        (root / f"patched{n}.py").write_text(_patched(0))

    def bare(name: str = "bare.txt") -> None:
        fd = os.open(root / "temp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(fd, text.encode())
        os.fsync(fd)
        os.close(fd)
        os.rename(root / "temp", root / name)

    def write() -> None:
        turns[0] += 1
        assert tools.call("file.write", {"path": "written.txt", "content": f"{turns[0]}\n{text}"}).success

    def patch() -> None:
        turn, turns[1] = turns[1], turns[1] + 1
        hunk = f"@@\n-turn = {turn}\n+turn = {turn + 1}\n"
        parts = "".join(f"*** Update File: patched{n}.py\n{hunk}" for n in range(10))
        result = codex.call("apply_patch_freeform", {"patch": f"*** Begin Patch\n{parts}*** End Patch\n"})
        assert result.success, result

    def ten() -> None:
        for n in range(10):
            bare(f"bare{n}.txt")

    return [
        compare("file.write of 5 KB / write+fsync+rename", write, bare, 2, rounds=60, number=3),
        compare("patch of ten files of 5 KB / ten of write+fsync+rename", patch, ten, 1.6, rounds=40),
    ]


def _patched(turn: int) -> str:
    around = "".join(f"value_{n:03} = {n:05}\n" for n in range(140))
    return f"{around}turn = {turn}\n{around}"


def _listing(workspace: Workspace, root: Path) -> Row:
    many = root / "many"
    many.mkdir()
    for n in range(10_000):
        (many / f"file{n:05}.txt").touch()
    name = str(many)

    def scan() -> None:
        for entry in os.scandir(name):
            entry.stat(follow_symlinks=False)

    return compare("list 10 000 entries / scandir+stat", lambda: workspace._services.reader.entries("many"), scan, 2)


def _start(root: Path) -> list[Row]:
    (root / "one.txt").write_text("one\n")
    python = [sys.executable]

    def call() -> None:
        subprocess.run(
            [*python, "-P", "-m", "handrail", "call", "file.read", "path=one.txt", "--root", root],
            stdout=-3,
            check=True,
        )

    def click() -> None:
        subprocess.run([*python, "-c", CLICK], check=True)

    def imported() -> float:
        told = subprocess.run([*python, "-c", IMPORT], check=True, capture_output=True).stdout
        return float(told)

    return [
        compare("handrail call / an empty click program", call, click, 2),
        row("import handrail, in ms / 100", statistics.median(imported() for _ in range(9)), 100, 1),
    ]


def page_growth() -> float:
    """Growth of memory while a page is read from the middle of a 1 GB file that was not seen before, in MB."""
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home:
        os.environ["HANDRAIL_STATE_DIR"] = f"{home}/state"
        Path(home, "small.txt").write_text("one\n")
        with open(f"{home}/huge.txt", "wb") as file:
            block = b"".join(b"line %09d of a large file\n" % n for n in range(32_768))
            file.writelines(block for _ in range((1 << 30) // len(block)))
        with Workspace(home, approve="auto") as workspace:
            tools = workspace.tools("file")
            tools.call("file.read", {"path": "small.txt", "offset": 1, "limit": 1})
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            result = tools.call("file.read", {"path": "huge.txt", "offset": 16_000_000, "limit": 100})
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert result.success, result
    return grown


def _page() -> Row:
    """In a process of its own, whose peak nothing else has raised."""
    code = "from bench.files import page_growth; print(page_growth())"
    grown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return row("page of a 1 GB file: growth in MB / 50", float(grown), 50, 1)


if __name__ == "__main__":
    show("Files", run())
