"""Declares the faults of reading images and PDF."""

from handrail.model.faults import PathFault


class NotText(PathFault):
    """The file is an image or a PDF, and the tool shows only text."""

    what: str
    """Type, dimensions and size, in words."""


class NotAnImage(PathFault):
    """The file is no image, and the tool shows only images."""


class BrokenImage(PathFault):
    """The file begins like an image, but cannot be read as one."""

    mime: str


class ImageTooLarge(PathFault):
    """The image is larger than a model may get, and cannot be scaled down."""

    width: int
    height: int
    size: int
    why: str
    """One of: pixels (more than the limit), no_scaler (Pillow is not installed)."""
