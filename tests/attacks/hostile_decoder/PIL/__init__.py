# ruff: noqa: N999  it has the name of the package that it replaces
"""Replaces Pillow by a decoder that an image has taken over: it makes the attacks of the hostile converter."""

import io
import json
import os
import sys
from types import SimpleNamespace
from typing import Any, Self

from html_to_markdown import attacks, outcome  # type: ignore[attr-defined]  # the hostile one


class _Image:
    size, width, height, format, mode = (1, 1), 1, 1, "PNG", "RGB"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def save(self, made: io.BytesIO, *_: object, **__: object) -> None:
        made.write(b"x")

    def draft(self, *_: object) -> None:
        return None

    thumbnail = draft


def _open(given: io.BytesIO, **_: Any) -> _Image:
    data = given.read()
    if data.startswith(b"{"):
        made = {name: outcome(act) for name, act in attacks(json.loads(data)).items()}
        sys.stdout.write(json.dumps(made))
        sys.stdout.flush()
        os._exit(0)
    return _Image()


Image = SimpleNamespace(
    open=_open, new=lambda *_: _Image(), Image=_Image, Resampling=SimpleNamespace(LANCZOS=1), MAX_IMAGE_PIXELS=None
)
ImageOps = SimpleNamespace(exif_transpose=lambda image: image)
