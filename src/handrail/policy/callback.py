"""A callback that is asked: only a clear yes is one, and one that fails refuses."""

from typing import Any, get_args

from handrail.model.approval import Approver, Keep, Question, Scope, Verdict
from handrail.model.faults import Cancelled, Denied

_REMEDY = "Nothing was done; the session log has the details"


def approver_of(asker: Any) -> Approver | None:
    """What a callback answers, as a verdict. Whatever it raises is the cause of the refusal."""
    if asker is None:
        return None

    def ask(question: Question) -> Verdict:
        try:
            return _verdict(asker(question))
        except Cancelled:
            raise
        except Exception as error:
            from handrail.ops.text.display import one_line  # noqa: PLC0415  only where it goes wrong

            why = one_line(f"{type(error).__name__}: {error}")
            raise Denied(question.tool, f"asking failed with {why}", _REMEDY) from error

    return ask


def _verdict(answer: Any) -> Verdict:
    if isinstance(answer, bool):
        return Verdict(answer, "callback", reason="the approval callback said no", remedy="Ask what to do instead")
    if not isinstance(answer, Verdict):  # a coroutine, say, is true but approves nothing
        raise TypeError(f"the callback must return a Verdict or a bool, not {type(answer).__name__}")
    if not isinstance(answer.allowed, bool):
        raise TypeError(f"allowed must be a bool, not {type(answer.allowed).__name__}")
    _check(answer.keep)
    return answer


def _check(keep: Keep) -> None:
    if not isinstance(keep, Keep) or not isinstance(keep.rule, str):
        raise TypeError("keep must be a Keep, and its rule text")
    if keep.scope not in get_args(Scope):
        raise ValueError(f"the scope must be one of {', '.join(get_args(Scope))}, not {keep.scope!r}")
    if not isinstance(keep.hours, int | float | None):
        raise TypeError(f"hours must be a number, not {type(keep.hours).__name__}")
