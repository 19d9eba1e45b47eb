"""Kills writers and a pruner of one history again and again; nothing that a writer was told is stored may get lost.

python pack_crowd.py SECONDS DIRECTORY prints what was stored, and everything that went wrong, as JSON.
"""

import itertools
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from handrail.kernel.host.state_dir import State
from handrail.kernel.journal import prune as pruning
from handrail.kernel.journal.blobs import BlobLost, fingerprint
from handrail.kernel.journal.journal import ChangedPath, Damage, JournalEntry, KeptNode, Origin, journal_of
from handrail.kernel.journal.prune import prune

WRITERS = 2


def state_of(root: str) -> State:
    os.environ["HANDRAIL_STATE_DIR"] = f"{root}/state"
    return State(root)


def write(root: str, number: int) -> None:
    """Store contents and name them in entries, as a commit does; print the number of each entry that is written."""
    state, chance = state_of(root), random.Random(time.time_ns() + number)
    journal = journal_of(state)
    for turn in itertools.count():
        with state.lock():
            texts = [b"%d %d %d\n" % (number, turn, n) * chance.randrange(1, 3000) for n in range(3)]
            texts.append(b"the same in many entries\n" * chance.randrange(1, 4))
            with journal.blobs.batch():
                names = [journal.blobs.put(text) for text in texts]
            files = [ChangedPath(f"f{n}", None, KeptNode("file", name)) for n, name in enumerate(names)]
            line = journal.compose(Origin(), files)
            journal.append(line)
        print(journal.last_number(), flush=True)
        if chance.random() < 0.1:
            journal.blobs.close()
            journal = journal_of(state)


def keep_pruning(root: str) -> None:
    """Prune, drop unnamed contents at once, and compress."""
    pruning._YOUNG_SECONDS = -10
    state = state_of(root)
    while True:
        journal = journal_of(state)
        journal.blobs.sweep()
        prune(state, journal, days=1, most_bytes=2_000_000)
        for each in itertools.islice(journal.backwards(), 5):
            if isinstance(each, JournalEntry) and each.files[0].after:
                journal.blobs.get(each.files[0].after.kept)


def start(what: str, root: str, number: int) -> "subprocess.Popen[str]":
    argv = [sys.executable, __file__, what, root, str(number)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wrong_in(state: State) -> list[str]:
    """Read every content that an entry names."""
    journal, wrong = journal_of(state), list[str]()
    for entry in journal.backwards():
        if isinstance(entry, Damage):
            continue  # a line that a kill cut: it was never confirmed
        for file in entry.files:
            assert file.after is not None
            try:
                assert fingerprint(journal.blobs.get(file.after.kept)) == file.after.kept
            except BlobLost as lost:
                wrong.append(f"entry {entry.n}: {lost}")
    return wrong


def crowd(seconds: float, root: str) -> dict[str, object]:
    os.makedirs(root, exist_ok=True)
    state, chance, until = state_of(root), random.Random(), time.monotonic() + seconds
    wrong, kills, confirmed = list[str](), 0, 0
    while time.monotonic() < until:
        running = [start("write", root, n) for n in range(WRITERS)] + [start("prune", root, 0)]
        for each in running[:WRITERS]:
            assert each.stdout is not None
            each.stdout.readline()  # it has stored something, or failed
        time.sleep(chance.random() / 2)  # hits any moment: in a commit, in a compaction, between two
        for each in running:
            each.kill()
            kills += 1
        for each in running:
            out, errors = each.communicate()
            wrong += errors.splitlines()[-1:]
            confirmed = max([confirmed, *map(int, out.split("\n")[:-1])])
        wrong += wrong_in(state)
        last = journal_of(state).last_number()
        if last < confirmed:
            wrong.append(f"entry {confirmed} was confirmed, and the last one is {last}")
    journal = journal_of(state)
    journal.blobs.sweep()
    journal.blobs.tidy()
    wrong += wrong_in(state)
    names = sorted(os.listdir(Path(state.path, "blobs")))
    wrong += [f"left: {name}" for name in names if name.endswith(".part")]
    return {"kills": kills, "entries": confirmed, "files": len(names), "wrong": wrong}


def main(what: str, *more: str) -> None:
    if what == "write":
        write(more[0], int(more[1]))
    elif what == "prune":
        keep_pruning(more[0])
    else:
        print(json.dumps(crowd(float(what), more[0])))


if __name__ == "__main__":
    main(*sys.argv[1:])
