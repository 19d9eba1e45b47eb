"""What a layer costs: mounts, commands, reads, searches, forks and snapshots, beside copies, worktrees and tar.

A time beside a fixed number of milliseconds is that of the fastest of several rounds.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.measure import Row, best, compare, row, show
from handrail import Snapshot, Workspace
from handrail.kernel.layers.overlay import Mount, refusal
from handrail.kernel.layers.upper import Upper

MOUNT_MS, FIRST_MS, MORE_MS, FORK_MS = 5, 60, 3, 50
FIRST_MB, FORK_KIB, FORK_MB = 0.1, 256, 5
FILES, FILE_BYTES = 5_000, 14_000
FORKS = 8
MANY_FORKS = 200
DEPTH = 50
BIG_FILES, BIG_BYTES = 3_000, 33_000


def run() -> list[Row]:
    if why := refusal():
        raise SystemExit(f"layers cannot be measured: {why}")
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home:
        os.environ["HANDRAIL_STATE_DIR"] = f"{home}/state"
        os.environ["HANDRAIL_CONFIG_DIR"] = f"{home}/config"
        tree = _tree(Path(home, "tree"), FILES, FILE_BYTES)
        return [
            *_mounts(Path(home), tree),
            *_first_command(Path(home), tree),
            *_beside_plain(tree),
            *_forks(Path(home), tree),
            *_snapshots(Path(home)),
        ]


def _tree(place: Path, count: int, size: int) -> Path:
    for number in range(count):
        file = place / f"d{number % 200}" / f"f{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes((f"line {number}\n" * (size // 10))[:size].encode())
    return place


def _mounts(home: Path, tree: Path) -> list[Row]:
    lower, opened = os.open(tree, os.O_PATH), list[Mount | Upper]()

    def mount() -> None:
        upper = Upper.open(f"{home}/layer")
        opened.extend([upper.mount([lower], str(tree)), upper])

    def close() -> None:
        while opened:
            opened.pop(0).close()

    took = best(mount, rounds=25, after=close)
    os.close(lower)
    return [row(f"mount a layer / {MOUNT_MS} ms", took, MOUNT_MS, 1)]


def _first_command(home: Path, tree: Path) -> list[Row]:
    """Measure the first command on a tree of 5000 files and 70 MB, and what the state holds afterwards."""
    times, sizes = [], []
    for number in range(5):
        with Workspace(tree, approve="auto", layered=f"first{number}") as workspace:
            times.append(best(lambda workspace=workspace: workspace.exec(["true"]), rounds=1))  # type: ignore[misc]
            sizes.append(_disk(Path(workspace._services.state.path)) / 1e6)
            workspace.discard()
    name = f"first command on {FILES} files, 70 MB"
    return [
        row(f"{name} / {FIRST_MS} ms", min(times), FIRST_MS, 1),
        row(f"{name}: MB of state / {FIRST_MB} MB", max(sizes), FIRST_MB, 1),
    ]


def _beside_plain(tree: Path) -> list[Row]:
    """Compare a layer, and one over many others, with the plain root."""
    with (
        Workspace(tree, approve="auto") as plain,
        Workspace(tree, approve="auto", layered="beside") as layered,
        Workspace(tree, approve="auto", layered="deep") as deep,
    ):
        for number in range(DEPTH):
            Path(f"/proc/self/fd/{deep._services.boundary.fd}/changed{number}.txt").write_text("x")
            deep.fork()[0].close()
        names = [f"d{number}/f{number}.txt" for number in range(100)]

        def reading(workspace: Workspace) -> Callable[[], object]:
            reader = workspace._services.reader
            return lambda: [reader.read(name) for name in names]

        def searching(workspace: Workspace) -> Callable[[], object]:
            tools = workspace.tools("file")
            return lambda: tools.call("file.search", {"pattern": "line 4999$"})

        def true(workspace: Workspace) -> Callable[[], object]:
            return lambda: workspace.exec(["true"])

        rows = [
            compare("read 100 files in a layer / plain", reading(layered), reading(plain), 2.0),
            compare(f"search {FILES} files in a layer / plain", searching(layered), searching(plain), 1.5),
            compare(f"read 100 files over {DEPTH} layers / plain", reading(deep), reading(plain), 2.0),
            compare(f"search {FILES} files over {DEPTH} layers / plain", searching(deep), searching(plain), 1.5),
        ]
        for name, workspace in (("in a layer", layered), (f"over {DEPTH} layers", deep)):
            alone, within = [], []
            for _ in range(25):
                alone.append(best(true(plain), rounds=1))
                within.append(best(true(workspace), rounds=1))
            more = max(min(within) - min(alone), 0.001)
            rows.append(row(f"true {name}, more than plain / {MORE_MS} ms", more, MORE_MS, 1))
        return rows


def _forks(home: Path, tree: Path) -> list[Row]:
    rows = []
    with Workspace(tree, approve="auto", layered="parent") as parent:
        times, sizes = [], []
        store = Path(parent._services.layer.store.path)  # type: ignore[union-attr]
        for number in range(5):
            parent.write_bytes("changed.txt", str(number).encode())
            before = _disk(store)
            forks = list[Workspace]()
            times.append(best(lambda forks=forks: forks.extend(parent.fork(FORKS)), rounds=1))  # type: ignore[misc]
            sizes.append((_disk(store) - before) / 1024)
            for fork in forks:
                fork.close()
        eight = min(times)
        copying = ["cp", "-a", str(tree), str(home / "copy")]
        copy = FORKS * best(
            lambda: subprocess.run(copying, check=True), rounds=3, after=lambda: shutil.rmtree(home / "copy")
        )
        rows += [
            row(f"{FORKS} forks / {FORK_MS} ms", eight, FORK_MS, 1),
            row(f"{FORKS} forks: KiB on disk / {FORK_KIB} KiB", max(sizes), FORK_KIB, 1),
            row(f"{FORKS} forks / {FORKS} times cp -a", eight, copy, 0.1),
            row(f"{FORKS} forks / {FORKS} git worktrees", eight, _worktrees(home, tree), 0.1),
            _many_forks(parent),
        ]
    return rows


def _many_forks(parent: Workspace) -> Row:
    """Measure the memory of a process that has many forks open, each with a live sandbox, for one fork."""
    before, forks = _memory(), parent.fork(MANY_FORKS)
    for fork in forks:
        assert fork.exec(["true"]).ok
    used = (_memory() - before) / MANY_FORKS
    for fork in forks:
        fork.close()
    return row(f"one of {MANY_FORKS} forks with a sandbox: MB of memory / {FORK_MB} MB", used, FORK_MB, 1)


def _memory() -> float:
    """Return the proportional memory of this process and of those that it started, in MB."""
    total, pids = 0, [os.getpid()]
    for pid in pids:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                total += int(line.split()[1]) if line.startswith("Pss:") else 0
            for thread in os.listdir(f"/proc/{pid}/task"):
                pids += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / 1024


def _worktrees(home: Path, tree: Path) -> float:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.test", "-C", str(home / "repository")]
    shutil.copytree(tree, home / "repository")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    add = [*git, "worktree", "add", "-q", "--detach", str(home / "worktree")]
    remove = [*git, "worktree", "remove", "--force", str(home / "worktree")]
    return FORKS * best(
        lambda: subprocess.run(add, check=True, capture_output=True),
        rounds=3,
        after=lambda: subprocess.run(remove, check=True),
    )


def _snapshots(home: Path) -> list[Row]:
    """Measure the snapshot of a change of 100 MB and its restore, beside tar."""
    root, source = home / "small", _tree(home / "change", BIG_FILES, BIG_BYTES)
    root.mkdir()
    with Workspace(root, approve="auto", layered="big") as workspace:
        view = f"/proc/self/fd/{workspace._services.boundary.fd}/change"
        shutil.copytree(source, view)
        os.sync()
        tar, untar = home / "change.tar", home / "untarred"
        snapshots, opened = list[Snapshot](), list[Workspace]()
        acts: dict[str, Callable[[], object]] = {
            "tar -c": lambda: subprocess.run(["tar", "-cf", tar, "-C", home, "change"], check=True),
            "snapshot": lambda: snapshots.append(workspace.snapshot()),
            "tar -x": lambda: subprocess.run(["tar", "-xf", tar, "-C", untar], check=True),
            "open": lambda: opened.append(Workspace.open(snapshots[-1], root, approve="auto")),
        }
        times: dict[str, list[float]] = {name: [] for name in acts}
        for _ in range(5):
            untar.mkdir()
            for name, act in acts.items():
                times[name].append(best(act, rounds=1))
            opened.pop().close()
            shutil.rmtree(untar)
            os.sync()
    took = {name: min(found) for name, found in times.items()}
    return [
        row("snapshot of 100 MB of changes / tar -c", took["snapshot"], took["tar -c"], 2),
        row("restore of 100 MB of changes / tar -x", took["open"], took["tar -x"], 2),
    ]


def _disk(path: Path) -> int:
    """Return the bytes that a directory takes on the disk; a file with several names counts once."""
    found = [os.lstat(f"{place}/{name}") for place, dirs, files in os.walk(path) for name in dirs + files]
    return sum({each.st_ino: each.st_blocks * 512 for each in found}.values())


if __name__ == "__main__":
    show(__doc__ or "", run())
