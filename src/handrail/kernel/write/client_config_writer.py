"""Writes configuration files of MCP clients: the user's own, and those in projects, which are not trusted."""

import os
from contextlib import closing

from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.fs.reader import Reader
from handrail.kernel.fs.trees import Trees
from handrail.kernel.host.client_files import replace_with_backup
from handrail.kernel.host.state_dir import State, read_small_text
from handrail.kernel.journal.journal import Origin, journal_of
from handrail.kernel.write.writer import Writer
from handrail.model.files import File, Put
from handrail.model.limits import Limits
from handrail.model.paths import quote


class UserFile:
    """Reads and replaces a file that the user has for all projects; the file may be a link to any place."""

    def __init__(self, path: str, limits: Limits) -> None:
        self._path, self._most = path, limits.config_bytes

    def read(self) -> str:
        """Return the text; empty if there is no file. Raises OSError if it is not a small regular file."""
        return read_small_text(self._path, self._most)

    def replace(self, text: str) -> str | None:
        """Replace the whole text. Returns the path of the backup; None if there is none."""
        return replace_with_backup(self._path, text)


class ProjectFile:
    """Reads and replaces a file in a project as tools do: follows no link out of it, and raises the same faults."""

    def __init__(self, root: str, path: str, limits: Limits) -> None:
        os.makedirs(root, exist_ok=True)
        self._root, self._name, self._limits = root, os.path.relpath(path, root), limits
        self._base: File | None = None

    def read(self) -> str:
        """Return the text; empty if there is no file."""
        with closing(FsBoundary(self._root)) as boundary:
            limits = self._limits._replace(edit_bytes=self._limits.config_bytes)
            self._base = Reader(boundary, limits).read_if_there(quote(self._name))
        return self._base.data.decode() if self._base else ""

    def replace(self, text: str) -> None:
        """Replace the whole text that `read` found. The journal keeps the old text; the project gets no backup."""
        with closing(FsBoundary(self._root)) as boundary:
            change = Put(quote(self._name), text.encode(), self._base)
            state = State(boundary.root)
            made = Writer(Trees(boundary), state, journal_of(state), self._limits)
            with closing(made), made.locked(change.path) as writer:
                writer.commit([change], writer.targets([change]), Origin(by="user", about="handrail config"))
