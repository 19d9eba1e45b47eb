"""Words why a directory cannot be the workspace, for every surface that takes one without asking the user."""

from handrail.kernel.host.project_root import RootRefused
from handrail.ops.text.display import visible

_WHY = {
    "gone": "it cannot be found",
    "home": "it is or contains your home directory",
    "other_user": "it belongs to another user",
}


def why_refused(refused: RootRefused) -> str:
    """Return the sentence for the user, without an end that says what to do."""
    return f"cannot use {visible(refused.path)} as the workspace: {_WHY[refused.why]}"
