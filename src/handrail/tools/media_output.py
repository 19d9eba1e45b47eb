"""Puts an image, a PDF or another file that is no text into an output, and takes it out again.

Every dialect that shows such files uses this one form; each surface and each function-calling API gives it its own.
"""

import json
from base64 import b64decode, b64encode
from typing import Any

from handrail.model.media import Media
from handrail.ops.media_header import described, media_header

SHOWN_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The images that every function-calling API takes."""


def inline(media: Media) -> dict[str, Any]:
    """Return the output that shows an image or a PDF."""
    return {"inlineData": {"mimeType": media.mime, "data": b64encode(media.data).decode()}}


def data_url(media: Media) -> str:
    """Return an image or a PDF as an address that holds it."""
    return f"data:{media.mime};base64,{b64encode(media.data).decode()}"


def media_of(output: Any) -> tuple[str, str] | None:
    """Return the type and the base64 data of an output that is an image, a PDF or the like; None for others."""
    if not isinstance(output, dict):
        return None
    if inlined := output.get("inlineData"):
        return inlined["mimeType"], inlined["data"]
    kind, mark, data = str(output.get("image_url", "")).partition(";base64,")
    return (kind.removeprefix("data:"), data) if mark and kind.startswith("data:") else None


def beside_media(output: Any) -> dict[str, Any]:
    """Return the fields of an output that are not the image or the like."""
    return {name: value for name, value in output.items() if name not in ("inlineData", "image_url")}


def text_of(output: Any) -> str:
    """Return an output as text: text as it is, an object as JSON, an image as a sentence that says what it is."""
    if media := media_of(output):
        data = b64decode(media[1])
        found = media_header(data)
        what = described(media[0], len(data), found.width if found else 0, found.height if found else 0)
        return f"The file is {what}; it cannot be shown as text"
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
