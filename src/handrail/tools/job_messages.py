"""Words the faults of jobs and of shells that remember, for every dialect."""

from handrail.model.job_faults import (
    JobEnded,
    NoKeyboard,
    RightsNotGranted,
    SandboxDemanded,
    ShellEnded,
    TooManyJobs,
    UnknownJob,
)
from handrail.tools.messages import Facts, Message, Words

_WHY = {
    "timeout": "it was ended because a command took too long",
    "cancelled": "it was ended because a call was cancelled",
    "forged": "it was ended because a command reported an end that did not happen",
    "sandbox": "its sandbox has ended",
}


def _shell_ended(facts: Facts) -> str:
    return f"The shell has ended: {_WHY.get(facts['why']) or how(facts)}; nothing was run"


def how(facts: Facts) -> str:
    """Say how a process has ended."""
    return f"ended by {facts['signal']}" if facts["signal"] else f"exit code {facts['exit_code']}"


JOBS: Words = {
    ShellEnded: Message("shell_ended", _shell_ended, "Restart the shell; its directory and variables are lost"),
    SandboxDemanded: Message(
        "sandbox_required",
        "Commands run in the sandbox; a call cannot switch it off. Nothing was run",
        "Call again without this parameter, or ask the user to change the sandbox in the settings",
        'Set sandbox = "network" or sandbox = "off" in the configuration to allow more to every command',
    ),
    UnknownJob: Message("unknown_job", "There is no job '{job}'", "Use the id that the start of the job returned"),
    JobEnded: Message("job_ended", lambda f: f"Job '{f['job']}' has ended ({how(f)})", "Start a new job"),
    NoKeyboard: Message(
        "no_terminal",
        "Job '{job}' has no terminal, so nothing can be typed into it",
        "Start the command again with a terminal",
    ),
    RightsNotGranted: Message(
        "rights_not_granted",
        lambda f: (
            f"Not granted: {', '.join(f['rights'])}. Only the settings of the user can grant this; nothing was run"
        ),
        "Go on within the sandbox, or ask the user to change the settings",
        'To grant it, set sandbox = "network", or list directories under readable and writable in the configuration',
    ),
    TooManyJobs: Message("too_many_jobs", "{limit} jobs are already running", "Stop one of them first"),
}
