"""Reads the files that the page consists of: all of them once, so that no request names a file."""

import os

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def page_files(directory: str) -> dict[str, tuple[str, bytes]]:
    """Return the kind and the content of each file, by its path below a directory of this package."""
    found = {}
    for place, _, names in os.walk(directory):
        for name in names:
            kind = _KINDS.get(os.path.splitext(name)[1])
            if kind:
                path = os.path.join(place, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, directory)] = (kind, file.read())
    return found
