"""What was protected in earlier sessions: so that a file that was moved since is known by what it is."""

import json

from handrail.kernel.fs.protection_scan import ProtectedNode
from handrail.kernel.host.state_dir import locked_beside, read_text, write_text


class RememberedFiles:
    """Keeps protected files, by inode number, in a file of Handrail's own; at most `most`, the latest found."""

    def __init__(self, path: str, most: int) -> None:
        self._path, self._most = path, most

    def read(self) -> dict[int, ProtectedNode]:
        """Raises OSError or ValueError where the file cannot be read or understood."""
        try:
            found = json.loads(read_text(self._path) or "{}")
            return {
                int(number): ProtectedNode(str(rule), int(born), int(size), int(mtime_ns))
                for number, (rule, born, size, mtime_ns) in found.items()
            }
        except (AttributeError, TypeError) as error:
            raise ValueError(str(error)) from None

    def update(self, found: dict[int, ProtectedNode], gone: set[int]) -> None:
        with locked_beside(self._path):
            try:
                kept = self.read()
            except ValueError:
                kept = {}
            merged = [(number, seen) for number, seen in kept.items() if number not in gone and number not in found]
            merged += found.items()
            write_text(self._path, json.dumps({str(number): seen for number, seen in merged[-self._most :]}))
