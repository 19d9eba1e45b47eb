"""Reads how a user names an image: `oci:PATH[:TAG]` or `docker-archive:PATH[:NAME]`."""

import os
import re
import shutil
from typing import Literal, NamedTuple

from handrail.errors import ImageError, did_you_mean

KINDS = ("oci", "docker-archive")
_TAG = re.compile(r"[A-Za-z0-9_][\w.-]{0,127}", re.ASCII)
_REFERENCE = re.compile(
    r"(?:docker://)?(?P<whole>(?:[a-z0-9][a-z0-9.-]*(?::[0-9]+)?/)?(?:[a-z0-9._-]+/)*"
    r"(?P<name>[a-z0-9][a-z0-9._-]*)(?P<tag>:[\w.-]+)?(?:@sha256:[0-9a-f]{64})?)",
    re.ASCII,
)
"""The name of an image in a registry, as docker and podman take it."""


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
            _refuse_other_kind(kind, path)
            return ImageName(kind, os.path.abspath(path), rest[end + 1 :])
    raise ImageError(f"image {rest} not found{_near(rest)}", "Pull one with skopeo or podman (docs/images.md)")


def new_image_name(text: str) -> ImageName:
    """Read the name of an image that is to be written: `oci:PATH:TAG`. Raises ImageError."""
    kind, rest = _split(text)
    path, colon, tag = rest.rpartition(":")
    if kind != "oci":
        raise ImageError(f"cannot write an image to {text}, only to oci:PATH:TAG")
    if not colon or not path or _TAG.fullmatch(tag) is None:
        raise ImageError(f"{text} names no tag", "Write oci:PATH:TAG, with letters, digits, _ . and - in the tag")
    return ImageName("oci", os.path.abspath(os.path.expanduser(path)), tag)


def _split(text: str) -> tuple[Literal["oci", "docker-archive"], str]:
    kind, _, rest = text.partition(":")
    if not rest or "\0" in text or kind not in KINDS:
        raise _no_image(text)
    return "oci" if kind == "oci" else "docker-archive", rest


# what a user may have meant


def _no_image(text: str) -> ImageError:
    """Return the error for a text that begins like no name of an image."""
    kind, colon, rest = text.partition(":")
    near = did_you_mean(kind, KINDS) if colon and rest[:2] != "//" and kind not in KINDS else ""
    where = os.path.expanduser(text)
    if "\0" not in text and os.path.exists(where):
        right = "oci" if os.path.isdir(where) else "docker-archive"
        return ImageError(f"{text!r} does not say which kind of image it is", f"Write {right}:{text}")
    reference = _REFERENCE.fullmatch(text)
    if reference is None or near:
        return ImageError(f"{text!r} is not an image{near}", "Write oci:PATH[:TAG] or docker-archive:PATH")
    name, tag = reference["name"], reference["tag"] or ":latest"
    line = f"skopeo copy docker://{reference['whole']} oci:images/{name}{tag}"
    missing = "" if shutil.which("skopeo") else ", after you installed skopeo"
    return ImageError(
        f"Handrail does not pull images: {text!r} is not on this machine", f"Pull it with: {line}{missing}"
    )


def _refuse_other_kind(kind: str, path: str) -> None:
    if kind == "oci" and os.path.isfile(path):
        raise ImageError(f"{path} is a file, not an OCI layout", f"Write docker-archive:{path}")
    if kind == "docker-archive" and os.path.isdir(path):
        raise ImageError(f"{path} is a directory, not an archive", f"Write oci:{path}")


def _near(path: str) -> str:
    """Return `; did you mean PATH?` for a path that does not exist, or nothing if no name is similar."""
    above = os.path.expanduser(path).partition(":")[0]
    while above and not os.path.exists(os.path.dirname(above) or "."):
        above = os.path.dirname(above)
    parent, name = os.path.split(above)
    try:
        return did_you_mean(above, [os.path.join(parent, each) for each in os.listdir(parent or ".")]) if name else ""
    except OSError:
        return ""
