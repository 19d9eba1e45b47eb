"""About 50 000 files and 500 MB of what is on this machine, copied once and kept for the next run."""

import os
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator

FILES, BYTES = 50_000, 500_000_000
LARGEST = 1_000_000
SOURCES = (
    "/usr/include",
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("purelib"),
    "/usr/share",
    "/usr/lib",
    "/usr/local",
)


def corpus() -> str:
    """The directory. What is binary on the machine is copied too, but only now and then."""
    place = os.path.join(tempfile.gettempdir(), "handrail-bench-corpus")
    ready = place + ".ready"
    if not os.path.exists(ready):
        shutil.rmtree(place, ignore_errors=True)
        files = size = 0
        for source, path, length in _candidates():
            target = os.path.join(place, str(files // 5000), path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(os.path.join(source, path), target)
            files, size = files + 1, size + length
            if files >= FILES or size >= BYTES:
                break
        with open(ready, "w", encoding="utf-8") as note:
            note.write(f"{files} files, {size} bytes")
    return place


def _candidates() -> Iterator[tuple[str, str, int]]:
    """Source, path beneath it, size."""
    binary = 0
    for source in SOURCES:
        for directory, names, files in os.walk(source):
            names[:] = sorted(name for name in names if name not in (".git", "node_modules", "build", "dist", "target"))
            for name in sorted(files):
                path = os.path.join(directory, name)
                if os.path.islink(path) or not os.path.isfile(path) or not os.access(path, os.R_OK):
                    continue
                size = os.path.getsize(path)
                if not 0 < size <= LARGEST:
                    continue
                with open(path, "rb") as file:
                    if b"\0" in file.read(8192):
                        binary += 1
                        if binary % 20:
                            continue
                yield source, os.path.relpath(path, source), size
