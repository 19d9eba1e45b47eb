"""Unpacks images on a disk that is full."""

import os
import subprocess
from pathlib import Path

import pytest
from support.oci_images import entry, layer, layout

from handrail import ImageError
from handrail.kernel.oci.image_manifest import open_image
from handrail.kernel.oci.image_names import image_name
from handrail.kernel.oci.layer_cache import LayerCache
from handrail.model.limits import Limits


def unpack(name: str) -> None:
    with open_image(image_name(name), Limits()) as image, LayerCache(Limits()).layers(image):
        pass


@pytest.mark.root
def test_image_without_room_on_disk_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    name = layout(tmp_path / "i", layer(entry("large", b"x" * 300_000)))
    room = Path(os.environ["HANDRAIL_STATE_DIR"])
    room.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k,mode=700", "tmpfs", room], check=False).returncode:
        pytest.skip("this system mounts nothing")
    try:
        with pytest.raises(ImageError, match=r"layer 1 .* cannot be unpacked: No space left"):
            unpack(name)
        assert os.listdir(room / "images" / "staging") == []
    finally:
        subprocess.run(["umount", room], check=True)
