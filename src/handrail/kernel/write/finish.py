"""Finishes a commit after its files are published: writes the journal entry and removes directories."""

import errno
import os
from contextlib import suppress

from handrail.kernel.fs.trees import Trees
from handrail.kernel.journal.journal import Journal
from handrail.kernel.write.intent_log import Intent
from handrail.model.faults import LinkLoop, NotADirectory, NotFound, OutsideRoot, ProtectedPath
from handrail.model.paths import quote

GONE = (NotFound, NotADirectory, OutsideRoot, LinkLoop)
_DISK_FAILS = (errno.EIO, errno.ENOSPC, errno.EDQUOT)


class Finish:
    """Does the last steps of a commit, for the writer and for recovery. Every step can be repeated."""

    def __init__(self, trees: Trees, journal: Journal) -> None:
        self._trees, self._journal = trees, journal

    def enter(self, intent: Intent, *, again: bool = True) -> None:
        """Append the commit to the journal. A failure is an error only if the journal is required.

        With `again`, an entry that is already there is not repeated.
        """
        if not intent.line:
            return
        store = self._journal.ensure if again else self._journal.append
        try:
            store(intent.line.encode())
        except OSError as error:
            if self._journal.mode == "required":
                raise
            self._journal.trouble = error.strerror or str(error)

    def remove_if_empty(self, rel: str) -> None:
        """Remove a directory if it is empty; another process may have filled or removed it."""
        with suppress(*GONE, ProtectedPath):
            place = self._trees.of(rel).locate(quote(rel), follow=False)
            try:
                os.rmdir(place.name, dir_fd=place.dir_fd)
            except OSError as error:
                if error.errno in _DISK_FAILS:
                    raise  # the caller tries again; a directory that is missing or not empty needs no action
            finally:
                place.close()
