"""Knows the media types that a model can see, by file name ending; the list is the same on every machine."""

_TYPES = {
    "application/pdf": "pdf",
    "image/avif": "avif",
    "image/bmp": "bmp",
    "image/gif": "gif",
    "image/heic": "heic",
    "image/jpeg": "jpg jpeg",
    "image/png": "png",
    "image/tiff": "tif tiff",
    "image/webp": "webp",
    "image/x-icon": "ico",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg oga opus",
    "audio/wav": "wav",
    "video/mp4": "mp4 m4v",
    "video/mpeg": "mpg mpeg",
    "video/quicktime": "mov",
    "video/webm": "webm",
    "video/x-matroska": "mkv",
    "video/x-msvideo": "avi",
}
_BY_ENDING = {ending: kind for kind, endings in _TYPES.items() for ending in endings.split()}


def media_type(name: str) -> str | None:
    """Return the media type of an image, sound, video or PDF by the ending of its name; None for other files."""
    return _BY_ENDING.get(name.rpartition(".")[2].lower())
