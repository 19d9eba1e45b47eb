"""Decides which user and group commands have, outside and inside the sandbox."""

import os
from typing import NamedTuple

from handrail.kernel.sandbox.view import visible_paths

INSIDE_UID = 1000


class Identity(NamedTuple):
    """Holds the user and group of commands, outside and inside the sandbox."""

    drop_to: tuple[int, int] | None
    """Outside; None for those of this process."""
    uid: int
    """Inside."""
    gid: int
    """Inside."""


def identity(root_fd: int) -> Identity:
    """Return whom commands run as: never uid 0 inside; outside, the workspace's owner if this process is root.

    Only root can write a workspace that belongs to root. Commands then keep uid 0 outside, but without a capability,
    inside a user namespace, with /proc and everything else of root's read-only or absent.
    """
    if os.geteuid() != 0:
        return Identity(None, os.geteuid(), os.getegid())
    owner = os.fstat(root_fd)
    if owner.st_uid:
        return Identity((owner.st_uid, owner.st_gid), owner.st_uid, owner.st_gid)
    return Identity((0, 0) if set(os.getgroups()) - {0} else None, INSIDE_UID, INSIDE_UID)


def user_number(user: str, root_fd: int) -> int | None:
    """Return the number of a user whom a sandbox can have, by name or number: root or the usual one; None for others.

    Both have the same rights, because a sandbox has no capabilities and its numbers all stand for one user outside.
    """
    usual = identity(root_fd).uid
    known = {"root": 0, "0": 0, visible_paths.USER: usual, str(usual): usual}
    return known.get(user)
