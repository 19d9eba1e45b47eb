"""Kills a process at each change that it makes to packs, whole or in the middle, and reads all contents after it.

python killing_packs.py DIRECTORY prints the number of kills of each work and everything that went wrong, as JSON. This
is a separate program, because a test runner with threads should not fork.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from faults.killing import survives
from support.fault_injection import Act, faults, killed, killed_in_the_middle

from handrail.kernel.contents import compaction
from handrail.kernel.journal.blobs import BlobLost, Blobs, fingerprint

TEXTS = [b"%d\n" % n * 40 for n in range(12)]
UNWANTED = TEXTS[::3]


def build(place: str) -> None:
    """Store contents in three packs and in old files."""
    shutil.rmtree(place, ignore_errors=True)
    for group in (TEXTS[:4], TEXTS[4:8], TEXTS[8:]):
        blobs = Blobs(place, sync=False)
        held = [Blobs(place, sync=False) for _ in range(2)]
        for each in held:
            each.put(b"held")
        last = [blobs.put(text) for text in group][-1]
        for each in (blobs, *held):
            each.close()
    os.makedirs(f"{place}/{last[0]}", exist_ok=True)
    Path(place, last[0], last[1:]).write_bytes(TEXTS[-1])


def add(place: str) -> None:
    blobs = Blobs(place, sync=True)
    with blobs.batch():
        for n in range(5):
            blobs.put(b"new %d" % n * 30)
    blobs._packs._writer.index()  # type: ignore[union-attr]
    blobs.close()


def tidy(place: str) -> None:
    Blobs(place, sync=True).tidy()


def drop(place: str) -> None:
    blobs = Blobs(place, sync=True)
    blobs.drop([fingerprint(text) for text in UNWANTED])


def compress(place: str) -> None:
    for path in Path(place).glob("*.pack"):
        compaction.compress(place, str(path), sync=True, stop=lambda: False)


WORK: dict[str, Callable[[str], None]] = {"add": add, "tidy": tidy, "drop": drop, "compress": compress}


def wrong_after(place: str, what: str) -> list[str]:
    """Read all that must be there, store all again, and read all again."""
    wrong, blobs, names = [], Blobs(place, sync=False), [fingerprint(text) for text in TEXTS]
    blobs.sweep()
    wrong += [f"left: {path.name}" for path in Path(place).glob("*.part")]
    for name, text in zip(names, TEXTS, strict=True):
        try:
            if blobs.get(name) != text:
                wrong.append(f"{name[:8]} is another content")
        except BlobLost as lost:
            if what != "drop" or text not in UNWANTED:
                wrong.append(str(lost))
    for text in TEXTS:
        blobs.put(text)
    blobs.close()
    again = Blobs(place, sync=False)
    return wrong + [f"{text!r} is not stored again" for text in TEXTS if again.get(fingerprint(text)) != text]


def faulty(work: Callable[[str], None], place: str, at: int, how: Act) -> None:
    with faults(at, how):
        work(place)


def run(place: str) -> dict[str, object]:
    kills, wrong = dict.fromkeys(WORK, 0), list[str]()
    for what, work in WORK.items():
        for how in (killed, killed_in_the_middle):
            for at in range(1, 1000):
                build(place)
                if survives(partial(faulty, work, place, at, how)):
                    break
                kills[what] += 1
                found = wrong_after(place, what)
                wrong += [f"{what}, {how.__name__} at {at}: {each}" for each in found]
    return {"kills": kills, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1])))
