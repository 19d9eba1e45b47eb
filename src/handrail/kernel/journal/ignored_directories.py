"""Decides which directories that ignore files exclude are small enough to be scanned around commands."""

import os

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_DEEPEST = 100


class IgnoredDirectories:
    """Counts the files of each directory once, up to a limit; the decision holds as long as the scan lives."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._small: dict[str, bool] = {}

    @property
    def too_large(self) -> list[str]:
        """The directories with more files than the limit, by path."""
        return sorted(path for path, small in self._small.items() if not small)

    def may_enter(self, dir_fd: int, path: str, name: str) -> bool:
        """Return whether a directory, `name` in `dir_fd`, has few files."""
        if path not in self._small:
            self._small[path] = _room_left(dir_fd, name, self._most) >= 0
        return self._small[path]

    @property
    def any(self) -> bool:
        """True if a directory was asked about."""
        return bool(self._small)

    def hold(self, path: str) -> bool:
        """Return whether a path lies in one of the directories."""
        parts = path.split("/")
        return any("/".join(parts[:count]) in self._small for count in range(1, len(parts)))


def _room_left(dir_fd: int, name: str, room: int, levels: int = _DEEPEST) -> int:
    """Return how many more entries than a directory has would fit; negative, and not exact, if it has too many."""
    try:
        fd = os.open(name, _DIRECTORY, dir_fd=dir_fd)
    except OSError:  # deleted meanwhile, or not readable
        return room
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                room -= 1
                if room >= 0 and entry.is_dir(follow_symlinks=False):
                    room = _room_left(fd, entry.name, room, levels - 1) if levels else -1
                if room < 0:
                    break
    except OSError:  # deleted meanwhile
        return room
    finally:
        os.close(fd)
    return room
