"""Words the refusal to run a command because the sandbox is not available or cannot cover protected files."""

from handrail.tools.messages import Facts, Message

_MACHINE = (
    "ask the user to repair the sandbox",
    "Install bubblewrap, or set allow_reduced = true in the configuration; handrail doctor shows what is missing",
)
# What to ask the user, and what to tell the user, for each reason about protected files.
_UNCOVERED = {
    "unreadable": (
        "ask the user to make the directory readable",
        "Make the directory readable for your user (chmod u+rwx), or narrow `protect` in the configuration",
    ),
    "too_deep": (
        "ask the user to move the directory to a shorter path, or to delete it",
        "Move the directory to a shorter path or delete it, or narrow `protect` in the configuration",
    ),
    "too_many": (
        "ask the user to move the protected files into one directory",
        "Narrow `protect` in the configuration, or protect one directory that holds the files: it counts as one",
    ),
}


def _message(facts: Facts) -> str:
    what = f"the sandbox level {facts['level']} is not available"
    if facts["reason"] in _UNCOVERED:
        what = "the sandbox cannot cover every protected file"
    return f"Cannot run commands: {what} ({'; '.join(facts['why'])})"


def _suggestion(facts: Facts) -> str:
    return f"Continue without commands, or {_UNCOVERED.get(facts['reason'], _MACHINE)[0]}"


def _allow(facts: Facts) -> str:
    return _UNCOVERED.get(facts["reason"], _MACHINE)[1]


SANDBOX_UNAVAILABLE = Message("sandbox_unavailable", _message, _suggestion, _allow)
