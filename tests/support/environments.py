"""Builds the images of tests: Debian from its packages, one layer for each, and busybox. Nothing is pulled."""

import fcntl
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from handrail.kernel.layers.overlay import refusal
from support.oci_images import Entry, directory, entry, layer, layout, symlink

# fmt: off
DEBIAN = (
    "libc6", "libtinfo6", "libacl1", "libattr1", "libgmp10", "libselinux1", "libpcre2-8-0", "zlib1g", "libexpat1",
    "libssl3", "bash", "dash", "coreutils", "grep", "sed", "findutils", "util-linux", "libpython3.11-minimal",
    "python3.11-minimal", "python3-minimal", "git",
)
# fmt: on
SETTINGS = {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "GREETING=from the image"], "WorkingDir": "/testbed"}
_TOP = (directory("etc"), directory("testbed"), directory("root", 0o700), directory("var"), directory("opt"))


@cache
def why_no_images() -> str:
    """Say why this machine cannot use images; empty if it can."""
    return refusal()


def debian(shared: Path) -> str:
    """Return the name of a Debian image, and build it once for all processes of a test run; skip if that fails."""
    return _built(shared / "debian", lambda place: _of_packages(place, DEBIAN, layer(*_TOP, symlink("bin/sh", "dash"))))


def busybox(shared: Path) -> str:
    """Return the name of an image with busybox alone."""
    return _built(shared / "busybox", _busybox)


def _built(place: Path, build: Callable[[Path], None]) -> str:
    if why := why_no_images():
        pytest.skip(f"no images here: {why}")
    place.mkdir(exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "layout" / "index.json").exists() and not (place / "why").exists():
            try:
                build(place)
            except (OSError, subprocess.SubprocessError) as error:
                (place / "why").write_text(f"the packages cannot be had: {error}")
        if (place / "why").exists():
            pytest.skip((place / "why").read_text())
    return f"oci:{place}/layout:latest"


def _of_packages(place: Path, names: tuple[str, ...], *more: bytes) -> None:
    found = [_archive(place, path) for path in _downloaded(place, names)]
    layout(place / "layout", *found, *more, settings=SETTINGS, pack=bytes)


def _busybox(place: Path) -> None:
    layout(place / "layout", layer(*busybox_entries(place)), settings=SETTINGS)


def busybox_entries(place: Path) -> list[Entry]:
    """Return the entries of an image with busybox alone; its package and its files go into a directory."""
    place.mkdir(exist_ok=True)
    [package] = _downloaded(place, ("busybox-static",))
    subprocess.run(["dpkg-deb", "-x", package, place / "files"], check=True, timeout=60)
    program = place / "files" / "bin" / "busybox"
    names = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout.split()
    links = [symlink(f"bin/{name}", "busybox") for name in names if name != "busybox"]
    return [*_TOP, directory("bin"), entry("bin/busybox", program.read_bytes(), mode=0o755), *links]


def _downloaded(place: Path, names: tuple[str, ...]) -> list[Path]:
    packages = place / "packages"
    packages.mkdir()
    options = ["-o", "APT::Sandbox::User=", "-qq"]
    subprocess.run(
        ["apt-get", *options, "download", *names], cwd=packages, check=True, capture_output=True, timeout=120
    )
    return [next(packages.glob(f"{name}_*.deb")) for name in names]


def _archive(place: Path, package: Path) -> bytes:
    return subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True, cwd=place, timeout=60
    ).stdout


def shared_place(factory: pytest.TempPathFactory) -> Path:
    """Return a directory that all processes of one test run share."""
    base = factory.getbasetemp()
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
