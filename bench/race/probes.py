"""`make bench-probes`: what an edit does to the rest of people's files, asked of everybody in the same way.

Of the peers only fidelity is asked. What concerns escapes from a workspace is asked of Handrail alone.
"""

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.race.contender import Contender
from bench.race.install import NotInstalled, ensure
from bench.race.ours import InProcess, Stdio
from bench.race.own_probes import own_probes
from bench.race.peers import PEERS
from bench.race.talk import Refused, TooSlow
from bench.results import save

GOOD, SECONDS, TIMES = "✓", 15.0, 5


@dataclass(frozen=True)
class Probe:
    name: str
    what: str
    needs: str
    ask: Callable[[Contender, Path], str]


def _edited(contender: Contender, path: Path, before: bytes, edit: tuple[str, str]) -> bytes | None:
    """What the file holds after one edit; None where it was not made, and nothing changed."""
    path.write_bytes(before)
    with suppress(Refused):
        contender.do("edit", SECONDS, path=str(path), old=edit[0], new=edit[1])
    now = path.read_bytes()
    return None if now == before else now


def crlf(contender: Contender, folder: Path) -> str:
    now = _edited(contender, folder / "crlf.txt", b"one\r\ntwo\r\nthree\r\n", ("two", "2"))
    if now is None:
        return "refuses"
    if now == b"one\r\n2\r\nthree\r\n":
        return GOOD
    return "all line ends become LF" if b"\r" not in now else "mixes line ends"


def latin1(contender: Contender, folder: Path) -> str:
    now = _edited(contender, folder / "latin1.txt", b"caf\xe9\nmiddle\nend\n", ("end", "END"))
    if now is None:
        return "refuses"
    return GOOD if now == b"caf\xe9\nmiddle\nEND\n" else "other bytes destroyed"


def tabs(contender: Contender, folder: Path) -> str:
    now = _edited(contender, folder / "tabs.txt", b"\tone\t1\n\ttwo\nthree\n", ("three", "3"))
    return "refuses" if now is None else GOOD if now == b"\tone\t1\n\ttwo\n3\n" else "tabs are expanded"


def mode(contender: Contender, folder: Path) -> str:
    path = folder / "mode.sh"
    path.write_bytes(b"one\n")
    path.chmod(0o751)
    if _edited(contender, path, b"one\n", ("one", "1")) is None:
        return "refuses"
    now = stat.S_IMODE(path.stat().st_mode)
    return GOOD if now == 0o751 else f"becomes {now:o}"


def together(contender: Contender, folder: Path) -> str:
    """The worst of a few times: the edits do not always meet."""
    refused = lost = 0
    for number in range(TIMES):
        path = folder / f"together{number}.txt"
        path.write_text("".join(f"slot {n} free\n" for n in range(8)))
        edits = [{"path": str(path), "old": f"slot {n} free", "new": f"slot {n} taken"} for n in range(8)]
        reported = contender.together("edit", SECONDS, edits)
        refused, lost = max(refused, 8 - reported), max(lost, reported - path.read_text().count("taken"))
    told = [f"{lost} of 8 lost"] * (lost > 0) + [f"{refused} of 8 refused"] * (refused > 0)
    return ", ".join(told) or GOOD


def half(contender: Contender, folder: Path) -> str:
    """The second file has no such line, so neither may change."""
    for name in ("first.txt", "second.txt"):
        (folder / name).write_text("one\ntwo\n")
    stem = os.path.relpath(folder, contender.root)
    first, second = (f"*** Update File: {stem}/{name}.txt\n@@\n" for name in ("first", "second"))
    text = f"*** Begin Patch\n{first}-one\n+1\n{second}-no such line\n+2\n*** End Patch\n"
    try:
        contender.do("patch", SECONDS, text=text, unified="")
    except Refused:
        return GOOD if (folder / "first.txt").read_text() == "one\ntwo\n" else "the first file stays changed"
    return "reports success"


def fifo(contender: Contender, folder: Path) -> str:
    os.mkfifo(folder / "fifo")
    try:
        contender.do("read", SECONDS, path=str(folder / "fifo"))
    except Refused:
        return GOOD
    return "answers as if it were a file"


PROBES = [
    Probe("CRLF", "one line of a file with CRLF is edited; every other byte stays", "edit", crlf),
    Probe("Latin-1", "a line of a file that is not UTF-8 is edited; every other byte stays", "edit", latin1),
    Probe("tabs", "a line of a file with tabs is edited; the tabs stay", "edit", tabs),
    Probe("mode", "an executable file is edited; its mode stays", "edit", mode),
    Probe("8 at once", "eight edits of eight lines arrive at the same time; all of them land", "edit", together),
    Probe("half a patch", "the second file of a patch does not fit; the first stays as it was", "patch", half),
    Probe("FIFO", "a named pipe is read; that is refused at once", "read", fifo),
]


def main() -> None:
    answers: dict[str, dict[str, str]] = {}
    kinds: list[type[Contender]] = [InProcess, Stdio, *PEERS]
    for kind in kinds:
        try:
            if kind.package:
                ensure(kind.package)
            answers[kind.name] = _asked(kind)
        except (NotInstalled, Refused, TooSlow, OSError) as error:
            print(f"skipped: {kind.name}: {error}")
            continue
        print(f"{kind.name:24}", "  ".join(f"{name}: {told}" for name, told in answers[kind.name].items()), flush=True)
    own = own_probes()
    for name, told in own.items():
        print(f"{name}: {told}")
    results: dict[str, Any] = {"probes": {each.name: each.what for each in PROBES}, "answers": answers, "own": own}
    print(f"\nwritten to {save('probes', results)}")


def _asked(kind: type[Contender]) -> dict[str, str]:
    with ExitStack() as stack:
        base = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True))
        root = Path(os.path.realpath(base), "root")
        (root / "files").mkdir(parents=True)
        (root / "small.txt").write_text("one\n")
        contender = kind(str(root), f"{base}/home")
        stack.callback(contender.close)
        contender.start()
        return {each.name: _answer(each, contender, root) for each in PROBES if contender.can(each.needs)}


def _answer(probe: Probe, contender: Contender, root: Path) -> str:
    try:
        return probe.ask(contender, root / "files")
    except TooSlow:
        contender.close()
        contender.start()
        return f"no answer in {SECONDS:.0f} s"


if __name__ == "__main__":
    main()
