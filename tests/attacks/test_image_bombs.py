"""Reads images that lie about their size, hold far more than they show, or take over their decoder."""

import json
import platform
import socket
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from support.media import image_file, media_dialect, png

from handrail import Workspace
from handrail.kernel.deadline import Deadline
from handrail.kernel.images.scaler import NotScaled, scale_down
from handrail.kernel.sandbox.helpers import landlock_exec
from handrail.kernel.sandbox.seccomp import ARCHES
from handrail.model.limits import MIB, Limits

FILTERED = sys.platform == "linux" and platform.machine() in ARCHES and landlock_exec.can_filter()
REFUSED = {"EPERM", "EACCES", "EMFILE", "ENOMEM", "EBADF", "MemoryError", "ValueError", "EFBIG"}


def refusal(root: Path, data: bytes, **limits: int) -> str:
    (root / "bomb").write_bytes(data)
    with Workspace(str(root), limits=limits) as workspace:
        error = media_dialect(workspace).call("show", {"path": "bomb"}).error
    assert error is not None
    return error.code


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (png(50_000, 50_000, b""), "image_too_large"),
        (png(2**32 - 1, 2**32 - 1, b""), "image_too_large"),
        (png(9000, 9000, b"\0" * 100), "broken_image"),
        (b"GIF89a" + b"\xff" * 4 + b"\0" * 10, "image_too_large"),
        (b"\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff" + b"\0" * 20, "image_too_large"),
        (b"\xff\xd8" + b"\xff" * 1000, "broken_image"),
        (b"\xff\xd8" + b"\xff\xe1\x00\x02" * 50_000, "broken_image"),
        (b"RIFF\0\0\0\0WEBPVP8X" + b"\xff" * 14, "image_too_large"),
        (b"RIFF\0\0\0\0WEBPVP8L", "broken_image"),
        (b"\x89PNG\r\n\x1a\n", "broken_image"),
    ],
)
def test_image_with_hostile_header_is_refused(data: bytes, code: str, root: Path) -> None:
    assert refusal(root, data) == code


def test_image_that_inflates_to_gigabytes_is_refused_within_memory(root: Path) -> None:
    """Show an image of ten thousand by nine thousand pixels, 360 MB when decoded, where 200 MB are allowed."""
    rows = zlib.compress(b"\0" * 27_001 * 10_000, 9)
    data = png(9_000, 10_000, rows)
    assert len(data) < MIB
    assert refusal(root, data, image_memory_bytes=200 * MIB, image_seconds=300) == "broken_image"
    with Workspace(str(root), limits={"image_seconds": 300}) as workspace:  # enough memory, also on a busy machine
        assert media_dialect(workspace).call("show", {"path": "bomb"}).success


def test_image_file_beyond_limit_is_refused_unread(root: Path) -> None:
    (root / "bomb").write_bytes(png(10, 10, b""))
    with (root / "bomb").open("r+b") as file:
        file.truncate(2**40)
    with Workspace(str(root)) as workspace:
        error = media_dialect(workspace).call("show", {"path": "bomb"}).error
    assert error is not None
    assert error.code == "file_too_large"


def test_animation_of_many_frames_is_one_image(root: Path) -> None:
    (root / "a.gif").write_bytes(image_file("GIF", 3000, 20, frames=40))
    with Workspace(str(root)) as workspace:
        result = media_dialect(workspace).call("show", {"path": "a.gif"})
    assert result.success
    assert result.metadata["shown"] == [2000, 13]


@pytest.mark.skipif(not FILTERED, reason="no filter of system calls here")
def test_hostile_decoder_reaches_no_file_network_or_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path(__file__).parent
    monkeypatch.setenv("PYTHONPATH", f"{here / 'hostile_decoder'}:{here / 'hostile_converter'}")
    precious, file = tmp_path / "precious", tmp_path / "made"
    precious.write_text("x")
    with socket.create_server(("127.0.0.1", 0)) as server:
        order = {"port": server.getsockname()[1], "precious": str(precious), "file": str(file)}
        outcomes = json.loads(scale_down(json.dumps(order).encode(), 10_000, Deadline(60), Limits()))
    assert len(outcomes) > 25
    assert {name: found for name, found in outcomes.items() if found not in REFUSED} == {}
    assert (precious.read_text(), file.exists()) == ("x", False)


def test_slow_decoder_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = tmp_path / "endless.py"
    endless.write_text("import time\nwhile True: time.sleep(1000)\n")
    monkeypatch.setattr("handrail.kernel.images.image_worker.__file__", str(endless))
    with pytest.raises(NotScaled):
        scale_down(b"x", 10, Deadline(0.2), Limits())


def test_header_of_random_bytes_never_raises() -> None:
    code = (
        "import random; from handrail.ops.media_header import media_header\n"
        "heads = [b'\\x89PNG\\r\\n\\x1a\\n', b'\\xff\\xd8\\xff', b'GIF89a', b'RIFF0000WEBPVP8 ', b'RIFF0000WEBPVP8L']\n"
        "for n in range(20000):\n"
        "    media_header(heads[n % 5] + random.Random(n).randbytes(n % 64))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_header_of_jpeg_of_endless_segments_is_bounded() -> None:
    from handrail.ops.media_header import media_header

    found = media_header(b"\xff\xd8" + b"\xff\xe0" + struct.pack(">H", 2) * 5_000_000)
    assert found is not None
    assert not found.is_whole
