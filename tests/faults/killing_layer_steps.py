"""Kills a process at each change of a file that one method of a layer makes, and checks what the next process finds.

python killing_layer_steps.py METHOD PLACE STRIDE prints the number of changes and everything that went wrong, as JSON.
This is a separate program, because a test runner with threads should not fork.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from support.oci_images import entry, layer, layout

from handrail import Snapshot, Workspace
from handrail.kernel.layers.layer_store import LayerStore
from handrail.kernel.oci.layer_cache import LayerCache
from handrail.model.limits import Limits

CHANGING = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.chown"}
CHANGING |= {"os.truncate", "os.setxattr", "os.utime", "os.fork", "socket.__new__"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
OLD, NEW = {"a": "old", "c": "gone"}, {"a": "new", "made/b": "new"}
SETTINGS: dict[str, Any] = {"approve": "auto", "sandbox": "off", "limits": {"layer_depth": 2}}


class Method:
    """Prepares a place, opens what is needed there, acts, and checks what a killed process left."""

    def __init__(self, place: Path) -> None:
        self.place, self.root = place, place / "root"
        self.root.mkdir(parents=True)
        for name, text in OLD.items():
            (self.root / name).write_text(text)
        os.environ["HANDRAIL_STATE_DIR"] = str(place / "state")

    def open(self) -> Any:
        """Open a layered workspace with changes."""
        workspace = self.layered()
        change(workspace)
        return workspace

    def act(self, workspace: Any) -> None:
        raise NotImplementedError

    def check(self) -> None:
        raise NotImplementedError

    def layered(self, name: str | bool = True) -> Workspace:
        return Workspace(self.root, layered=name, **SETTINGS)

    def check_store(self, root: str) -> None:
        """Check that nothing is left that no layer needs, and that nothing is mounted."""
        store = LayerStore(root)
        store.sweep()
        names = set(store.names())
        needed = {each for name in names if (record := store.record(name)) for each in record.frozen}
        assert set(os.listdir(f"{store.path}/named")) == names
        assert set(os.listdir(f"{store.path}/frozen")) == needed
        assert set(os.listdir(store.path)) <= {"named", "frozen", "sessions", "digests.json"}, os.listdir(store.path)
        assert str(self.place) not in Path("/proc/self/mounts").read_text()


class Apply(Method):
    def act(self, workspace: Any) -> None:
        assert workspace.apply().done

    def check(self) -> None:
        Workspace(self.root, **SETTINGS).close()
        assert files(self.root) in (OLD, NEW), files(self.root)
        with self.layered() as workspace:
            assert workspace.apply().done
            assert workspace.changes() == []
        assert files(self.root) == NEW
        self.check_store(str(self.root))


class Discard(Method):
    def act(self, workspace: Any) -> None:
        workspace.discard()

    def check(self) -> None:
        with self.layered() as workspace:
            assert seen(workspace) in (OLD, NEW)
            assert {each.path for each in workspace.changes()} in (set(), {"a", "c", "made", "made/b"})
            workspace.discard()
            assert seen(workspace) == OLD
        assert files(self.root) == OLD
        self.check_store(str(self.root))


class Fork(Method):
    """Forks a layer over so many others that they become one."""

    def open(self) -> Any:
        workspace = super().open()
        for number in range(2):
            workspace.write_bytes(str(number), b"")
            workspace.fork()[0].close()
        workspace.write_bytes("a", b"newest")
        return workspace

    def act(self, workspace: Any) -> None:
        workspace.fork(2)

    def check(self) -> None:
        expected = NEW | {"a": "newest", "0": "", "1": ""}
        for name in LayerStore(str(self.root)).names():
            with self.layered(name) as workspace:
                assert seen(workspace) == expected, (name, seen(workspace))
        assert files(self.root) == OLD
        self.check_store(str(self.root))


class TakeSnapshot(Fork):
    def act(self, workspace: Any) -> None:
        workspace.snapshot().save(self.place / "snapshot")

    def check(self) -> None:
        super().check()
        with suppress(FileNotFoundError), Workspace.open(Snapshot.load(self.place / "snapshot"), **SETTINGS) as opened:
            assert seen(opened) == NEW | {"a": "newest", "0": "", "1": ""}


class Open(Method):
    """Opens a snapshot."""

    def open(self) -> Any:
        with super().open() as workspace:
            return workspace.snapshot()

    def act(self, workspace: Any) -> None:
        Workspace.open(workspace, **SETTINGS)

    def check(self) -> None:
        with self.layered() as workspace:
            assert seen(workspace) == NEW
        self.check_store(str(self.root))


class InImage(Method):
    """Does something in an image with two layers."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        below = [entry(f"work/{name}", text.encode()) for name, text in OLD.items()]
        self.image = layout(place / "image", layer(*below), layer(entry("etc/hello", b"")))

    def layered(self, name: str | bool = "kept") -> Workspace:
        return Workspace(image=self.image, workdir="/work", layered=name, approve="auto")


class Commit(InImage):
    def open(self) -> Any:
        workspace = super().open()
        workspace.fork()[0].close()
        workspace.write_bytes("a", b"newest")
        return workspace

    def act(self, workspace: Any) -> None:
        workspace.commit(f"oci:{self.place}/out:one")

    def check(self) -> None:
        for _ in range(2):
            with self.layered() as workspace:
                workspace.commit(f"oci:{self.place}/out:one")
                assert not [name for name in os.listdir(workspace._services.state.path) if name.startswith("commit")]
                root = workspace._services.layer.store.root  # type: ignore[union-attr]
        with Workspace(image=f"oci:{self.place}/out:one", workdir="/work", approve="auto") as written:
            assert seen(written) == NEW | {"a": "newest"}
        assert {*os.listdir(self.place / "out")} == {"oci-layout", "index.json", "blobs"}, os.listdir(
            self.place / "out"
        )
        self.check_store(root)


class Prune(InImage):
    def open(self) -> Any:
        with self.layered("temporary-one"):
            return LayerCache(Limits())

    def act(self, workspace: Any) -> None:
        assert workspace.prune(0)[0] == 2

    def check(self) -> None:
        with self.layered("temporary-two") as workspace:
            assert seen(workspace) == OLD
        cache = LayerCache(Limits())
        cache.prune(0)
        assert [os.listdir(f"{cache.path}/{room}") for room in ("layers", "staging", "known")] == [[], [], []]


METHODS = {
    "apply": Apply,
    "discard": Discard,
    "fork": Fork,
    "snapshot": TakeSnapshot,
    "open": Open,
    "commit": Commit,
    "prune": Prune,
}


def change(workspace: Workspace) -> None:
    for name, text in NEW.items():
        workspace.write_bytes(name, text.encode())
    os.unlink(f"/proc/self/fd/{workspace._services.boundary.fd}/c")


def seen(workspace: Workspace) -> dict[str, str]:
    return files(Path(f"/proc/self/fd/{workspace._services.boundary.fd}/."))


def files(place: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for above, _, names in os.walk(place):
        found |= {str((Path(above) / name).relative_to(place)): Path(above, name).read_text() for name in names}
    return found


def in_child(act: Callable[[], None]) -> str:
    """Run `act` in a process of its own. Return what it wrote, and an empty text if it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            act()
            os.write(writing, b"done")
        except BaseException:
            os.write(writing, traceback.format_exc()[-2000:].encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        said = file.read().decode()
    os.waitpid(child, 0)
    return said


def killed_at(method: Method, at: int) -> tuple[str, int]:
    """Act, and be killed at change number `at`. Return what the process said, and the number of changes."""
    count = method.place / "count"

    def act() -> None:
        opened, pid, done = method.open(), os.getpid(), 0

        def counting(event: str, given: tuple[Any, ...]) -> None:
            nonlocal done
            if os.getpid() != pid or not (event in CHANGING or (event == "open" and given[2] & WRITING)):
                return
            done += 1
            if done == at:
                os.kill(pid, signal.SIGKILL)

        sys.addaudithook(counting)
        method.act(opened)
        count.write_text(str(done))

    said = in_child(act)
    return said, int(count.read_text()) if count.exists() else 0


def main(name: str, place: str, stride: str) -> None:
    said, total = killed_at(METHODS[name](Path(place, "whole")), 0)
    wrong = {} if said == "done" else {"whole": said}
    killed, points = 0, range(1, total + 1, max(1, int(stride) and total // int(stride)))
    for at in points:
        method = METHODS[name](Path(place, str(at)))
        said, _ = killed_at(method, at)
        killed += said == ""
        if said not in ("", "done"):
            wrong[f"{at}, itself"] = said
        if (said := in_child(method.check)) != "done":
            wrong[str(at)] = said
    print(json.dumps({"points": len(points), "killed": killed, "changes": total, "wrong": wrong}))


if __name__ == "__main__":
    main(*sys.argv[1:])
