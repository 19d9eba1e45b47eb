"""Stores contents on a disk until it is full, and prunes there; every content that was accepted must stay readable.

python full_disk.py DIRECTORY prints the counts and everything that went wrong, as JSON. Run it in its own mount
namespace, with a small tmpfs on DIRECTORY.
"""

import json
import os
import random
import sys
from contextlib import suppress

from handrail.kernel.contents import compaction
from handrail.kernel.journal.blobs import BlobLost, Blobs, fingerprint


def main(directory: str) -> dict[str, object]:
    place, chance = f"{directory}/blobs", random.Random(7)
    stored, accepted, refused, wrong = dict[str, bytes](), 0, 0, list[str]()
    blobs, reader = Blobs(place, sync=True), Blobs(place, sync=True)
    fill(directory)
    for turn in range(400):
        text = chance.randbytes(chance.choice((10, 700, 9_000, 40_000)))
        try:
            stored[blobs.put(text)] = text
            accepted += 1
        except OSError:
            refused += 1
            assert not blobs.has(fingerprint(text))
        if turn % 50 == 49:
            try:
                blobs.tidy()
            except OSError:
                refused += 1
            os.unlink(f"{directory}/filler")
            gone = [*stored][::2]
            assert blobs.drop(gone) == set(gone)
            for name in gone:
                del stored[name]
            fill(directory)
        for each in (blobs, reader, Blobs(place, sync=True)):
            wrong += [name for name, text in stored.items() if not _reads(each, name, text)]
    left = [name for name in os.listdir(place) if name.endswith(compaction.PART)]
    return {"accepted": accepted, "refused": refused, "wrong": wrong + left}


def fill(directory: str) -> None:
    """Take room that is given back before each pruning: a pack is rewritten before the old one is removed."""
    with suppress(OSError), open(f"{directory}/filler", "wb") as file:
        file.write(bytes(600_000))


def _reads(blobs: Blobs, name: str, text: bytes) -> bool:
    try:
        return blobs.get(name) == text
    except BlobLost:
        return False


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
