"""Keeps a copy of Handrail's interpreter that runs in every container image, with its own loader and libraries.

An image may have no Python, or another C library. The copy lies in the state directory of the user, and sandboxes see
it read-only at `TOOLS`. It is made once for each interpreter.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from functools import cache

from handrail.kernel.host.state_dir import make_private, state_home
from handrail.kernel.sandbox import interpreter
from handrail.kernel.sandbox.view.image_root import TOOLS

_LOADER = f"{TOOLS}/bin/loader"
_NEEDED = re.compile(r"=> (/\S+) \(0x")
_LIST_SECONDS = 10


@cache
def image_tools() -> tuple[str, list[str]]:
    """Return the directory to show at `TOOLS`, and the command that runs the interpreter in it. Raises OSError."""
    program, lib, copies = interpreter.copies(TOOLS)
    loader = _loader()
    facts = [(to, os.stat(source)[6:9]) for to, source in sorted(copies.items()) if source != os.devnull]
    key = hashlib.sha256(repr((loader, os.stat(loader)[6:9], facts)).encode()).hexdigest()[:16]
    place = os.path.join(state_home(), "images", "tools", key)
    if not os.path.isdir(place):
        _make(place, loader, copies)
    return place, [_LOADER, "--library-path", f"{lib}:{TOOLS}/libraries", program, "-X", "utf8"]


def _loader() -> str:
    """Return the dynamic loader of this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        mapped = {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if "/ld-" in line}
    found = next((path for path in sorted(mapped) if re.match(r"ld-(linux|musl)", os.path.basename(path))), None)
    if found is None:
        raise FileNotFoundError(2, "the loader of this interpreter cannot be found")
    return found


def _make(place: str, loader: str, copies: dict[str, str]) -> None:
    """Make the copy under another name, and give it its own: it is there completely or not at all."""
    make_private(os.path.dirname(place))
    made = f"{place}-{os.urandom(6).hex()}"
    try:
        for to, source in {**copies, _LOADER: loader, **_libraries(loader, copies)}.items():
            _copy(source, made + to.removeprefix(TOOLS))
        os.rename(made, place)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not os.path.isdir(place):  # else another process was faster
            raise


def _copy(source: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
    if source == os.devnull:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT, 0o644))
        return
    shutil.copy2(source, target)
    os.chmod(target, 0o755)  # noqa: S103  every user inside may run it; its parent is private
    compiled = os.path.join("__pycache__", f"{os.path.basename(source)[:-3]}.{sys.implementation.cache_tag}.pyc")
    ready = os.path.join(os.path.dirname(source), compiled)
    if source.endswith(".py") and os.path.exists(ready):  # valid there too: it names the time and size of the source
        _copy(ready, os.path.join(os.path.dirname(target), compiled))


def _libraries(loader: str, copies: dict[str, str]) -> dict[str, str]:
    """Return the libraries that the interpreter and its modules need: where to copy each, and from where."""
    found = {}
    for to, source in copies.items():
        if to.endswith(".so") or "/bin/" in to:
            argv = [loader, "--list", source]
            listed = subprocess.run(argv, capture_output=True, check=False, timeout=_LIST_SECONDS, env={}, text=True)
            for path in _NEEDED.findall(listed.stdout):
                found[f"{TOOLS}/libraries/{os.path.basename(path)}"] = path
    return found
