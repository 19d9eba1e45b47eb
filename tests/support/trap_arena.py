"""Builds a workspace full of traps, next to canary files that no call may read or change."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from support.tree import Tree, snapshot

SECRET = "CANARY: no tool may show this"

LINKS = {
    "out_abs": "{outside}/secret.txt",
    "out_rel": "../outside/secret.txt",
    "out_dir": "../outside",
    "out_dir_abs": "{outside}",
    "out_sibling": "../workspace-evil",
    "chain": "chain_2",
    "chain_2": "sub/chain_3",
    "sub/chain_3": "../../outside/secret.txt",
    "sub/up": "../../outside",
    "dangling_out": "../outside/new.txt",
    "dangling_out_abs": "{outside}/new.txt",
    "dangling_out_dir": "../outside/new",
    "dangling_in": "missing.txt",
    "round_trip": "../workspace/inside.txt",
    "proc_cwd": "/proc/self/cwd",
    "proc_root": "/proc/self/root",
    "proc_environ": "/proc/self/environ",
    "dev_fd": "/dev/fd",
    "dev_zero": "/dev/zero",
    "loop_a": "loop_b",
    "loop_b": "loop_a",
    "loop_self": "loop_self",
    "in_rel": "inside.txt",
    "in_abs": "{root}/inside.txt",
    "in_dir": "sub",
    "in_dir_abs": "{root}/sub",
    "in_up_down": "sub/../inside.txt",
    "in_chain": "in_abs",
    "sub/back": "../inside.txt",
    "other_root/inside_link": "../in_dir/file.txt",
}
ODD_NAMES = ["-rf", "--pre=id", " padded ", "~", "$HOME", "%2e%2e", "name:stream", "CON", "a\\b", '"q"', "tab\t", "..."]
UNDECODABLE = os.fsdecode(b"caf\xff\xfe.txt")


@dataclass
class Arena:
    top: Path
    root: Path
    outside: Path
    before: Tree

    def fill(self, path: str) -> str:
        return path.replace("{root}", str(self.root)).replace("{outside}", str(self.outside))

    def beyond(self) -> Tree:
        """Return everything outside the workspace."""
        tree = snapshot(self.top, precise=True)
        return {name: what for name, what in tree.items() if name.split("/")[0] != "workspace"}

    def check(self) -> None:
        assert self.beyond() == self.before


def build(top: Path) -> Arena:
    root, outside, evil = top / "workspace", top / "outside", top / "workspace-evil"
    for directory in (root / "sub" / "deep", root / "other_root", outside / "dir", evil):
        directory.mkdir(parents=True)
    for canary in (outside / "secret.txt", outside / "dir" / "secret.txt", evil / "secret.txt"):
        canary.write_text(SECRET)
    (outside / "twin.txt").write_text("one\ntwo\n")
    os.link(outside / "twin.txt", root / "twin.txt")
    for name in ("inside.txt", "sub/file.txt", "sub/deep/x.txt", UNDECODABLE, *ODD_NAMES):
        (root / name).write_text("one\ntwo\n")
    for name, target in LINKS.items():
        (root / name).symlink_to(target.replace("{root}", str(root)).replace("{outside}", str(outside)))
    _special(root)
    arena = Arena(top, root, outside, {})
    arena.before = arena.beyond()
    return arena


def _special(root: Path) -> None:
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(root)  # the path of a socket may have at most 108 bytes
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
    (root / "sparse").touch()
    os.truncate(root / "sparse", 1 << 40)
