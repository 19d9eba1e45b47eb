"""Declares the faults of jobs and of shells that remember."""

from handrail.model.faults import Fault


class ShellEnded(Fault):
    """The shell has ended before this command: nothing was run. Only a restart helps."""

    shell: str
    why: str
    """One of: exited, timeout, cancelled, forged (a command reported an end that did not happen), sandbox (it died)."""
    exit_code: int | None
    signal: str


class SandboxDemanded(Fault):
    """The call asks to run a command without the sandbox, which only the user can do, in the settings."""


class JobFault(Fault):
    job: str


class UnknownJob(JobFault):
    """No job of this session has this id."""


class JobEnded(JobFault):
    """The job has ended, and a call has reported its end: nothing can be typed or stopped any more."""

    exit_code: int | None
    signal: str


class NoKeyboard(JobFault):
    """The job runs without a terminal: nothing can be typed."""


class TooManyJobs(Fault):
    limit: int


class RightsNotGranted(Fault):
    """The call asks for rights beyond those of commands, which no answer to a question can grant."""

    rights: list[str]
