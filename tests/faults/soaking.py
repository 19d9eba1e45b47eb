"""Kills commits at random moments, and runs many processes on the same files. `make soak` runs longer than the tests.

python soaking.py kills COUNT ROOT · python soaking.py crowd SECONDS ROOT
"""

import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from handrail import Workspace
from handrail.kernel.journal.journal import JournalEntry

FILES = 50
PROCESSES = 4


def open_workspace(root: str) -> Workspace:
    return Workspace(root, approve="auto", sandbox="off", log_level="off", durability="rename")


# ── kills ──


def content(turn: int, name: str) -> str:
    return f"{name} {turn}\n" * 200


def work(root: str) -> None:
    """Commit and undo changes of several files until the parent kills this process."""
    with open_workspace(root) as workspace:
        workspace.call("codex", "apply_patch_freeform", {"patch": "all is loaded by now"})
        workspace.history()
        print("ready", flush=True)
        for turn in itertools.count(workspace._services.journal.last_number()):
            if turn % 3 == 2:
                workspace.history().undo()
                continue
            patch = "".join(
                f"*** Delete File: {name}\n"
                if (Path(root) / name).exists() and turn % 5 == 4
                else _put(root, name, turn)
                for name in ("a", "b", "d/c")
            )
            workspace.call("codex", "apply_patch_freeform", {"patch": f"*** Begin Patch\n{patch}*** End Patch\n"})


def _put(root: str, name: str, turn: int) -> str:
    path = Path(root) / name
    new = content(turn, name).split("\n")[:-1]
    if not path.exists():
        return f"*** Add File: {name}\n" + "".join(f"+{line}\n" for line in new)
    old = path.read_text().split("\n")[:-1]
    return (
        f"*** Update File: {name}\n@@\n" + "".join(f"-{line}\n" for line in old) + "".join(f"+{line}\n" for line in new)
    )


def kills(root: str, count: int) -> dict[str, Any]:
    chance, wrong, reached = random.Random(count), [], 0
    os.makedirs(root, exist_ok=True)
    for turn in range(count):
        with subprocess.Popen([sys.executable, __file__, "work", "0", root], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(chance.random() * 0.2)  # hits any moment: in a commit, in an undo, between two
            child.send_signal(signal.SIGKILL)
        with open_workspace(root) as workspace:
            reached = max(reached, workspace._services.journal.last_number())
            wrong += [f"{turn}: {each}" for each in damage(root, workspace)]
    return {"kills": count, "entries": reached, "wrong": wrong}


def damage(root: str, workspace: Workspace) -> list[str]:
    """Return a line for each torn file, each difference from the journal, and each file left behind."""
    wrong = []
    known: dict[str, str | None] = {}
    for entry in workspace._services.journal.backwards():
        if not isinstance(entry, JournalEntry):
            wrong.append(f"a line of the journal is damaged: {entry}")
            continue
        for file in entry.files:
            kept = None if file.after is None or file.after.kind != "file" else file.after.kept
            known.setdefault(file.path, kept)
    blobs = workspace._services.journal.blobs
    for name in ("a", "b", "d/c"):
        path = Path(root) / name
        text = path.read_text() if path.exists() else None
        if text is not None and not re.fullmatch(rf"({name} \d+\n)\1{{199}}", text):
            wrong.append(f"{name} is torn: {text[:40]!r}, {len(text)} characters")
        kept = known.get(name)
        if (blobs.get(kept).decode() if kept else None) != text:
            wrong.append(f"{name} is not what the journal says")
    left = [str(each) for each in Path(root).rglob(".handrail-*")]
    left += os.listdir(workspace._services.state.pending)
    left += map(str, Path(workspace._services.state.path, "blobs").glob("*.part"))
    return wrong + [f"left: {name}" for name in left]


# ── many processes ──


def edit(root: str, number: int, seconds: float) -> None:
    """Add marked lines to files that all processes edit; print the accepted lines and the number of refusals."""
    chance, landed, refused, until = random.Random(number), list[tuple[str, str]](), 0, time.monotonic() + seconds
    with open_workspace(root) as workspace:
        turn = 0
        while time.monotonic() < until:
            turn += 1
            name, mark = f"f{chance.randrange(FILES)}", f"{number}.{turn}"
            if chance.random() < 0.5:
                workspace.call("file", "file.read", {"path": name})
            patches = [{"find": "END", "replace": f"{mark}\nEND"}]
            result = workspace.call("file", "file.patch", {"path": name, "patches": patches})
            if result.success:
                landed.append((name, mark))
            else:
                assert result.error is not None
                assert result.error.code == "stale_file", result
                refused += 1
    print(json.dumps({"landed": landed, "refused": refused}))


def crowd(root: str, seconds: float) -> dict[str, Any]:
    os.makedirs(root, exist_ok=True)
    for number in range(FILES):
        Path(root, f"f{number}").write_text("END\n")
    argv = [sys.executable, __file__, "edit", str(seconds), root]
    running = [subprocess.Popen([*argv, str(number)], stdout=subprocess.PIPE, text=True) for number in range(PROCESSES)]
    answers = [json.loads(child.communicate()[0]) for child in running]
    found = {name: Path(root, name).read_text().split("\n") for name in os.listdir(root)}
    landed = [tuple(each) for answer in answers for each in answer["landed"]]
    lost = [each for each in landed if each[1] not in found[each[0]]]
    lines = sum(len(text) - 2 for text in found.values())
    return {
        "landed": len(landed),
        "refused": sum(answer["refused"] for answer in answers),
        "lost": lost,
        "unasked": lines - len(landed),
        "names": len(found),
    }


def main(what: str, amount: str, root: str, *more: str) -> None:
    os.environ.setdefault("HANDRAIL_STATE_DIR", f"{root}-state")
    os.environ.setdefault("HANDRAIL_CONFIG_DIR", f"{root}-config")
    if what == "work":
        work(root)
    elif what == "edit":
        edit(root, int(more[0]), float(amount))
    else:
        found = kills(root, int(amount)) if what == "kills" else crowd(root, float(amount))
        print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
