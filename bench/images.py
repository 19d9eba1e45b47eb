"""What a container image costs: unpacking, opening, mounts and commands, beside umoci, podman, cp -a and the host.

Each time is that of the fastest of several rounds.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measure import Row, best, row
from handrail import Workspace
from handrail.kernel.layers.overlay import Mount, refusal
from handrail.kernel.layers.upper import Upper
from handrail.kernel.oci.image_manifest import open_image
from handrail.kernel.oci.image_names import image_name
from handrail.kernel.oci.layer_cache import LayerCache, visible_layers
from handrail.model.limits import MIB, Limits

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.environments import busybox_entries
from support.oci_images import Entry, entry, layer, layout

MOUNT_MS, OPEN_MS, MORE_MS = 5, 50, 3
DEPTHS = (1, 10, 50)
FILES, FILE_BYTES = 4_000, 50_000
MB_PER_SECOND = 50
SETTINGS = {"Env": ["PATH=/bin"], "WorkingDir": "/testbed"}


def run() -> list[Row]:
    if why := refusal():
        raise SystemExit(f"images cannot be measured: {why}")
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home:
        os.environ["HANDRAIL_STATE_DIR"] = f"{home}/state"
        os.environ["HANDRAIL_CONFIG_DIR"] = f"{home}/config"
        place = Path(home)
        return [*_unpacking(place), *_running(place)]


# unpacking


def _unpacking(home: Path) -> list[Row]:
    """Measure an image of 200 MB in 4000 files, packed with gzip, beside what else unpacks it or copies its files."""
    text = b"".join(os.urandom(24).hex().encode() + b"\n" for _ in range(FILE_BYTES // 49))
    files = [entry(f"opt/d{number % 100}/f{number}", text) for number in range(FILES)]
    image = layout(home / "large", layer(*files))
    size = len(text) * FILES / MIB
    name, limits = image_name(image), Limits()

    def unpack() -> None:
        with open_image(name, limits) as opened, LayerCache(limits).layers(opened) as layers:
            assert [each.unpacked for each in layers] == [True]

    ours = best(unpack, rounds=3, after=lambda: LayerCache(limits).prune(0))
    rows = [row(f"unpack {size:.0f} MiB / at {MB_PER_SECOND} MiB a second", ours, size / MB_PER_SECOND * 1000, 1)]
    for program, argv in _peers(home, image).items():
        took = best(lambda argv=argv: subprocess.run(argv, check=True, capture_output=True), rounds=1)  # type: ignore[misc]
        rows.append(row(f"unpack {size:.0f} MiB / {program}", ours, took, 3))
    with open_image(name, limits) as opened, LayerCache(limits).layers(opened) as layers:
        argv = ["cp", "-a", layers[0].tree, str(home / "copy")]
        took = best(lambda: subprocess.run(argv, check=True), rounds=3, after=lambda: shutil.rmtree(home / "copy"))
    return [*rows, row(f"unpack {size:.0f} MiB / cp -a of its files", ours, took, 10)]


def _peers(home: Path, image: str) -> dict[str, list[str]]:
    """Return how other programs unpack the image; those that do not work on this machine are left out."""
    rootless = [] if os.geteuid() == 0 else ["--rootless"]
    peers = {
        "umoci": ["umoci", "unpack", *rootless, "--image", image.removeprefix("oci:"), str(home / "umoci")],
        "podman": ["podman", "--root", str(home / "podman"), "pull", "--quiet", image],
        "docker": ["skopeo", "copy", "--quiet", image, "docker-daemon:handrail-bench:latest"],
    }
    works = {"umoci": ["umoci", "--version"], "podman": ["podman", "info"], "docker": ["docker", "info"]}
    return {name: argv for name, argv in peers.items() if _succeeds(works[name]) and shutil.which(argv[0])}


def _succeeds(argv: list[str]) -> bool:
    try:
        return subprocess.run(argv, capture_output=True, check=False, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


# opening and running


def _running(home: Path) -> list[Row]:
    base = layer(*busybox_entries(home / "busybox"))
    root = home / "plain"
    root.mkdir()
    rows = []
    with Workspace(root, approve="auto") as plain:
        for depth in DEPTHS:
            image = layout(home / f"depth{depth}", base, *(layer(_mark(number)) for number in range(1, depth)))
            with Workspace(image=image, workdir="/testbed", approve="auto"):
                pass  # it is cached from now on
            rows += [
                _mounts(home / f"mount{depth}", image, depth),
                _opening(image, depth),
                *_commands(plain, image, depth),
            ]
    return rows


def _mark(number: int) -> Entry:
    return entry(f"opt/layer{number}", b"x" * 100)


def _mounts(at: Path, image: str, depth: int) -> Row:
    """Measure the mount of an image's layers with an upper over them."""
    limits = Limits()
    at.mkdir()
    with open_image(image_name(image), limits) as opened, LayerCache(limits).layers(opened) as layers:
        lowers = [os.open(each.tree, os.O_PATH) for each in visible_layers(layers)]
        (at / "view").mkdir()
        opened_ones = list[Mount | Upper]()

        def mount() -> None:
            upper = Upper.open(str(at / "layer"))
            opened_ones.extend([upper.mount(lowers, str(at / "view")), upper])

        def close() -> None:
            while opened_ones:
                opened_ones.pop(0).close()

        took = best(mount, rounds=25, after=close)
        for fd in lowers:
            os.close(fd)
    return row(f"mount an image of {depth} layers / {MOUNT_MS} ms", took, MOUNT_MS, 1)


def _opening(image: str, depth: int) -> Row:
    """Measure how long a cached image takes until its first file is read."""

    opened = list[Workspace]()

    def ready() -> None:
        opened.append(Workspace(image=image, workdir="/testbed", approve="auto"))
        opened[0].call("file", "file.list", {"path": "."})

    took = best(ready, rounds=16, after=lambda: opened.pop().close())
    return row(f"open a cached image of {depth} layers and list it / {OPEN_MS} ms", took, OPEN_MS, 1)


def _commands(plain: Workspace, image: str, depth: int) -> list[Row]:
    """Measure `true` in a live sandbox and in a new one, each more than on the host."""
    with Workspace(image=image, workdir="/testbed", approve="auto") as workspace:
        both = (workspace, plain)
        for each in both:
            each.exec(["true"])
        live: tuple[list[float], list[float]] = ([], [])
        fresh: tuple[list[float], list[float]] = ([], [])
        for _ in range(25):
            for each, times in zip(both, live, strict=True):
                times.append(best(lambda each=each: each.exec(["true"]), rounds=1))  # type: ignore[misc]
        for _ in range(15):
            for each, times in zip(both, fresh, strict=True):
                with each.session() as session:
                    tools = session.tools("codex")
                    times.append(best(lambda tools=tools: tools.call("shell", {"command": "true"}), rounds=1))  # type: ignore[misc]
    return [
        row(f"true in an image of {depth} layers, more than on the host / {MORE_MS} ms", _more(live), MORE_MS, 1),
        row(
            f"first true of a session in {depth} layers, more than on the host / {MORE_MS} ms", _more(fresh), MORE_MS, 1
        ),
    ]


def _more(times: tuple[list[float], list[float]]) -> float:
    """Return how much longer the first took than the second; at least something, because a ratio needs it."""
    return max(min(times[0]) - min(times[1]), 0.001)
