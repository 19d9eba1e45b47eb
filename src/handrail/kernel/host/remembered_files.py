"""Remembers the protected files of earlier sessions, so that a file that was moved since is still recognised."""

import json

from handrail.kernel.fs.protection_scan import ProtectedNode
from handrail.kernel.host.state_dir import locked_directory_of, read_text, write_text


class RememberedFiles:
    """Keeps protected files by inode number in one of Handrail's own files; at most `most`, the latest ones."""

    def __init__(self, path: str, most: int) -> None:
        self._path, self._most = path, most

    def read(self) -> dict[int, ProtectedNode]:
        """Return the remembered files. Raises OSError or ValueError if the file cannot be read or parsed."""
        try:
            found = json.loads(read_text(self._path) or "{}")
            return {
                int(number): ProtectedNode(str(rule), int(born), int(size), int(mtime_ns))
                for number, (rule, born, size, mtime_ns) in found.items()
            }
        except (AttributeError, TypeError, RecursionError) as error:
            raise ValueError(str(error)) from None

    def update(self, found: dict[int, ProtectedNode], gone: set[int]) -> None:
        """Add the files that were found and remove those that are gone."""
        with locked_directory_of(self._path):
            try:
                kept = self.read()
            except ValueError:
                kept = {}
            merged = [(number, seen) for number, seen in kept.items() if number not in gone and number not in found]
            merged += found.items()
            write_text(self._path, json.dumps({str(number): seen for number, seen in merged[-self._most :]}))
