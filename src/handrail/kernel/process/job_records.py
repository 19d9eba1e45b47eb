"""Records the jobs of live sessions in the state directory, so that another process can list them.

The process of a session holds the lock of its record. A record without a holder belongs to a killed process.
"""

import fcntl
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.kernel.host.state_dir import State, locked_directory_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handrail.kernel.process.jobs import JobFacts

COMMAND_CHARS = 2000
"""The part of a command that a record keeps."""


class RecordedJob(NamedTuple):
    """Describes a job of a live session."""

    session: str
    number: int
    command: str
    directory: str
    started_at: float
    running: bool
    exit_code: int | None
    signal: str | None


class JobRecord:
    """Holds the record of one session. It exists while the session has jobs."""

    def __init__(self, state: State, session: str) -> None:
        self._session, self._fd = session, -1
        self._path = os.path.join(_directory(state), session)

    def update(self, jobs: "Sequence[JobFacts]") -> None:
        """Write what is known about the jobs; remove the record if there are none."""
        with suppress(OSError):  # only a list for the user: a failing disk must not disturb the jobs
            if jobs:
                values = [recorded(self._session, job)._asdict() for job in jobs]
                with locked_directory_of(self._path):
                    self._write(json.dumps(values).encode())
            elif self._fd >= 0:
                with locked_directory_of(self._path):
                    self._remove()

    def _write(self, data: bytes) -> None:
        if self._fd < 0:
            _live_records(os.path.dirname(self._path))  # removes what killed processes left
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, data, 0)

    def _remove(self) -> None:
        os.close(self._fd)
        self._fd = -1
        os.unlink(self._path)


def recorded(session: str, job: "JobFacts") -> RecordedJob:
    """Return what a list shows of a job."""
    command = job.text[:COMMAND_CHARS]
    return RecordedJob(
        session, job.number, command, job.directory, job.started_at, job.running, job.exit_code, job.signal
    )


def live_jobs(state: State) -> list[RecordedJob]:
    """Return the jobs of all live sessions of a workspace; remove the records of killed processes."""
    directory = _directory(state)
    if not os.path.isdir(directory):
        return []
    with locked_directory_of(os.path.join(directory, "any")):
        records = _live_records(directory)
    return [job for record in records for job in _parsed(record)]


def _directory(state: State) -> str:
    return os.path.join(state.path, "jobs")


def _live_records(directory: str) -> list[bytes]:
    """Return the records whose lock is held, and remove all others. Use this only under the lock of the directory."""
    found = []
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        except BlockingIOError:  # its process is alive
            found.append(os.pread(fd, os.fstat(fd).st_size, 0))
        finally:
            os.close(fd)
    return found


def _parsed(record: bytes) -> list[RecordedJob]:
    """Return the jobs in a record; none if a full disk cut it."""
    try:
        values: list[dict[str, Any]] = json.loads(record)
        return [RecordedJob(**job) for job in values]
    except (ValueError, TypeError):
        return []
