"""Reads an image or a PDF for a model: scales a large image down, takes pages out of a PDF."""

from typing import TYPE_CHECKING

from handrail.kernel.deadline import Deadline
from handrail.kernel.images.pdf_pages import NotTakenApart, can_choose_pages, choose_pages
from handrail.kernel.images.scaler import NotScaled, can_scale, scale_down
from handrail.model.editor_faults import PagesUnknown
from handrail.model.faults import TooLarge
from handrail.model.limits import BINARY_CHECK_BYTES, KIB, Limits
from handrail.model.media import Media
from handrail.model.media_faults import BrokenImage, ImageTooLarge, NotText
from handrail.ops.media_header import MediaHeader, described, media_header

if TYPE_CHECKING:
    from handrail.runtime.call import Call

_HEAD_BYTES = 256 * KIB
"""The part of a file that holds the header of an image: a JPEG may begin with a preview and a colour profile."""


def read_media(call: "Call", path: str, *, scale: bool = True) -> Media | None:
    """Return the image or PDF at a path; None for every other file. Without `scale`, an image stays as it is.

    Raises TooLarge, BrokenImage and ImageTooLarge.
    """
    head, size = call.files.head(path, BINARY_CHECK_BYTES)
    found = media_header(head)
    if found is None:
        return None
    limit = call.limits.image_file_bytes if found.is_image else call.limits.pdf_bytes
    if size > limit:
        raise TooLarge(path, size, limit)
    data = call.files.read(path).data
    found = media_header(data) or found
    if not found.is_image:
        return Media(found.mime, data, 0, 0, len(data), 0, 0)
    if not found.is_whole:
        raise BrokenImage(path, found.mime)
    if found.width * found.height > call.limits.image_pixels:
        raise ImageTooLarge(path, found.width, found.height, len(data), "pixels")
    whole = Media(found.mime, data, found.width, found.height, len(data), found.width, found.height)
    return _scaled(call, path, whole) if scale and _asks_too_much(found, data, call.limits) else whole


def read_pages(call: "Call", path: str, whole: Media, pages: tuple[int, int]) -> tuple[Media, int]:
    """Return a PDF with some pages of another one, and the number of pages of that. Raises PagesUnknown."""
    if not can_choose_pages():
        raise PagesUnknown(path, "no_parser")
    try:
        found = choose_pages(whole.data, *pages, Deadline(call.limits.pdf_seconds, call.cancel), call.limits)
    except NotTakenApart:
        raise PagesUnknown(path, "broken") from None
    if not found.data:
        raise PagesUnknown(path, "beyond", found.total)
    return whole._replace(data=found.data), found.total


def refuse_media(call: "Call", path: str) -> None:
    """Raise NotText if the file is an image or a PDF."""
    head, size = call.files.head(path, _HEAD_BYTES)
    if found := media_header(head):
        raise NotText(path, described(found.mime, size, found.width, found.height))


def _most_bytes(limits: Limits) -> int:
    """Return the size whose base64 text just fits."""
    return limits.image_base64_bytes // 4 * 3


def _asks_too_much(found: MediaHeader, data: bytes, limits: Limits) -> bool:
    return len(data) > _most_bytes(limits) or max(found.width, found.height) > limits.image_edge


def _scaled(call: "Call", path: str, whole: Media) -> Media:
    """Return the image scaled down. Without Pillow, an image that the APIs still take stays as it is."""
    limits, most = call.limits, _most_bytes(call.limits)
    if not can_scale():
        if len(whole.data) <= most and max(whole.width, whole.height) <= limits.image_side:
            return whole
        raise ImageTooLarge(path, whole.width, whole.height, whole.original_size, "no_scaler")
    try:
        data = scale_down(whole.data, most, Deadline(limits.image_seconds, call.cancel), limits)
    except NotScaled:
        raise BrokenImage(path, whole.mime) from None
    made = media_header(data)  # the process that decoded the image may be in the hands of the image
    if made is None or not made.is_image or len(data) > most or max(made.width, made.height) > limits.image_edge:
        raise BrokenImage(path, whole.mime)
    return whole._replace(mime=made.mime, data=data, width=made.width, height=made.height)
