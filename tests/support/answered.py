"""Checks that a function answers, whatever it is given."""

from collections.abc import Callable

from handrail.model.faults import Fault


def assert_answered(function: Callable[[], object]) -> None:
    """Check that a function returns or raises a fault, which is an answer too; any other exception is a bug."""
    try:
        function()
    except Fault:
        return
    except Exception as error:
        raise AssertionError(f"neither an answer nor a fault: {error!r}") from error
