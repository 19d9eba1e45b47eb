"""Says whether layers work here, and takes user namespaces away from a process."""

import ctypes
import os
import struct

import pytest

from handrail.kernel.layers.overlay import refusal

needs_overlays = pytest.mark.skipif(bool(refusal()), reason=f"no overlays here: {refusal()}")
_NEW_USER, _CAPABILITIES_3, _SET_DUMPABLE = 0x10000000, 0x20080522, 4


def own_proc_files() -> None:
    """Give this process its files in /proc back, which the system took away when root became another user."""
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 1, 0, 0, 0)


def deny_user_namespaces() -> None:
    """Keep this process, which has one thread and no privileges, from making user namespaces from now on."""
    own_proc_files()
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_USER):
        return  # the machine denies them anyway
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    with open("/proc/sys/user/max_user_namespaces", "w") as file:
        file.write("0")
    header = struct.pack("=Ii", _CAPABILITIES_3, 0)
    if libc.capset(header, struct.pack("=6I", *(0,) * 6)):
        raise OSError(ctypes.get_errno(), "capabilities cannot be given up")
