"""Words the faults of reading images and PDF."""

from handrail.model.media_faults import BrokenImage, ImageTooLarge, NotAnImage, NotText
from handrail.tools.messages import Facts, Message, Words

_TOO_LARGE = {
    "pixels": ("more pixels than can be decoded", "Make a smaller copy of the image with a command, and read that"),
    "no_scaler": (
        "larger than a model can get, and Handrail cannot scale it down",
        "Make a smaller copy of the image with a command, and read that",
    ),
}


def _too_large(facts: Facts) -> str:
    pixels = f"{facts['width']}x{facts['height']} pixels, {facts['size']} bytes"
    return f"'{facts['path']}' has {pixels}: {_TOO_LARGE[facts['why']][0]}"


def _allow(facts: Facts) -> str:
    return "Install handrail[images], which scales images down" if facts["why"] == "no_scaler" else ""


_NOT_TEXT = Message(
    "not_text", "'{path}' cannot be shown as text: it is {what}", "Read another file, or look into it with a command"
)
NOT_SHOWN = _NOT_TEXT._replace(suggestion="Continue without its content: no tool here can show it")
"""For dialects that have no commands."""

MEDIA: Words = {
    NotText: _NOT_TEXT,
    NotAnImage: Message("not_an_image", "'{path}' is not an image", "Read it with a command"),
    BrokenImage: Message(
        "broken_image",
        "'{path}' begins like {mime}, but cannot be decoded as an image",
        "Check the file with a command, or make it again",
    ),
    ImageTooLarge: Message("image_too_large", _too_large, lambda f: _TOO_LARGE[f["why"]][1], _allow),
}
