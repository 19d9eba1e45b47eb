"""Reads how a user names an image: `oci:PATH[:TAG]` or `docker-archive:PATH[:NAME]`."""

import os
import re
from typing import Literal, NamedTuple

from handrail.errors import ImageError, did_you_mean

KINDS = ("oci", "docker-archive")
_TAG = re.compile(r"[A-Za-z0-9_][\w.-]{0,127}", re.ASCII)


class ImageName(NamedTuple):
    """Names a place of images, and which of the images there is meant."""

    kind: Literal["oci", "docker-archive"]
    path: str
    tag: str
    """Empty if the place holds one image only."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.path}{self.tag and ':'}{self.tag}"


def image_name(text: str) -> ImageName:
    """Read the name of an existing image. The longest prefix that exists is the path. Raises ImageError."""
    kind, rest = _split(text)
    ends = [len(rest), *(at for at in range(len(rest) - 1, 0, -1) if rest[at] == ":")]
    for end in ends:
        path = os.path.expanduser(rest[:end])
        if path and os.path.exists(path):
            return ImageName(kind, os.path.abspath(path), rest[end + 1 :])
    raise ImageError(f"there is no image at {rest}", "Pull one with skopeo or podman (docs/images.md)")


def new_image_name(text: str) -> ImageName:
    """Read the name of an image that is to be written: `oci:PATH:TAG`. Raises ImageError."""
    kind, rest = _split(text)
    path, colon, tag = rest.rpartition(":")
    if kind != "oci":
        raise ImageError(f"an image can be written to oci:PATH:TAG only, not to {text}")
    if not colon or not path or _TAG.fullmatch(tag) is None:
        raise ImageError(f"{text} names no tag", "Write oci:PATH:TAG, with letters, digits, _ . and - in the tag")
    return ImageName("oci", os.path.abspath(os.path.expanduser(path)), tag)


def _split(text: str) -> tuple[Literal["oci", "docker-archive"], str]:
    kind, colon, rest = text.partition(":")
    if not colon or not rest or "\0" in text or kind not in KINDS:
        near = did_you_mean(kind, KINDS) if colon else ""
        raise ImageError(f"{text!r} is not an image{near}", "Write oci:PATH[:TAG] or docker-archive:PATH")
    return "oci" if kind == "oci" else "docker-archive", rest
