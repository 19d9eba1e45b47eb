"""The same work done bare: what the system itself takes, with no boundary, no journal and no answer to word."""

import os
import pty
import select
import subprocess
import sys

from bench.drivers.serve import serve
from handrail.kernel.sandbox import find_bwrap
from handrail.kernel.search.rg_process import program
from handrail.ops.search.scope import Scope

ROOT = sys.argv[1]
RG = program() or "rg"
SCOPE = ["--no-config", "--hidden", "--no-require-git", *(f"--glob=!{name}/" for name in Scope().exclusions)]


def read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read().decode()


def page(path: str, line: int, count: int) -> str:
    """Counts the lines, which is the least that tells where one begins and how many there are."""
    return subprocess.run(["wc", "-l", path], capture_output=True, text=True, check=True).stdout


def listing(path: str) -> str:
    with os.scandir(path) as entries:
        return "\n".join(sorted(entry.name for entry in entries))


def write(path: str, content: str) -> None:
    fd = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, content.encode())
    os.fsync(fd)
    os.close(fd)
    os.rename(f"{path}.new", path)


def edit(path: str, old: str, new: str) -> None:
    write(path, read(path).replace(old, new, 1))


def patch(text: str, unified: str) -> None:
    subprocess.run(["git", "apply", "-p1", "-"], cwd=ROOT, input=unified.encode(), check=True)


def glob(path: str, pattern: str) -> str:
    return _rg(path, "--files", "-g", pattern)


def search(path: str, text: str) -> str:
    return _rg(path, "--line-number", "-e", text)


def first(path: str, text: str, limit: int) -> str:
    """ripgrep until so many lines are there, from whichever files are read first."""
    with subprocess.Popen([RG, *SCOPE, "--line-number", "-e", text, "."], cwd=path, stdout=-1, text=True) as process:
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(limit)]
        process.kill()
    return "".join(lines)


def count(path: str, text: str) -> str:
    found = _rg(path, "--count", "-e", text).splitlines()
    return str(sum(int(line.rpartition(":")[2]) for line in found))


def _rg(path: str, *arguments: str) -> str:
    ran = subprocess.run([RG, *SCOPE, *arguments, "."], cwd=path, stdout=subprocess.PIPE, check=False)
    return ran.stdout.decode(errors="replace")


def shell(command: str) -> str:
    subprocess.run([f"/usr/bin/{command}"], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return "done"


def sandboxed(command: str) -> str:
    argv = [find_bwrap.candidates(ROOT)[0], "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    argv += ["--bind", ROOT, ROOT, "--die-with-parent", "--", f"/usr/bin/{command}"]
    subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return "done"


_terminals: list[int] = []


def terminal(text: str) -> str:
    """What is typed at `cat`, echoed by the terminal and by the program."""
    if not _terminals:
        child, master = pty.fork()
        if child == 0:
            os.execv("/usr/bin/cat", ["cat"])
        _terminals.append(master)
    os.write(_terminals[0], text.encode())
    seen = b""
    while seen.count(text.strip().encode()) < 2:
        select.select(_terminals, [], [])
        seen += os.read(_terminals[0], 1000)
    return seen.decode()


if __name__ == "__main__":
    serve(
        {
            "read": read,
            "page": page,
            "list": listing,
            "write": write,
            "edit": edit,
            "patch": patch,
            "glob": glob,
            "search": search,
            "first": first,
            "count": count,
            "shell": shell,
            "sandboxed": sandboxed,
            "terminal": terminal,
        }
    )
