"""The person at the terminal, if there is one."""

from handrail.kernel.gate import Approver
from handrail.kernel.terminal import open_terminal
from handrail.limits import Limits


def terminal_asker() -> Approver | None:
    """Somebody to ask, where there is a terminal."""
    terminal = open_terminal()
    if terminal is None:
        return None
    from handrail.surfaces.cli.answers import Asker  # noqa: PLC0415  only where somebody is there

    return Asker(*terminal, Limits())
