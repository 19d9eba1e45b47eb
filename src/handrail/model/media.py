"""Defines an image or a PDF that a tool shows to a model."""

from typing import NamedTuple


class Media(NamedTuple):
    """Holds an image or a PDF as a model gets it, and what the file was before it was scaled down."""

    mime: str
    data: bytes
    width: int
    """The dimensions of `data` in pixels; 0 for a PDF."""
    height: int
    original_size: int
    """The size of the file in bytes."""
    original_width: int
    original_height: int

    @property
    def is_image(self) -> bool:
        return self.mime.startswith("image/")

    @property
    def is_scaled(self) -> bool:
        return len(self.data) != self.original_size or self.width != self.original_width
