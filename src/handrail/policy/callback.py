"""Turns the caller's approver into a verdict: only a clear yes is one, and an approver that fails refuses."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, get_args

from handrail.model.approval import Approver, Keep, Question, Scope, Verdict
from handrail.model.faults import Cancelled, Denied

AnyApprover = Callable[[Question], Verdict | bool] | Callable[[Question], Awaitable[Verdict | bool]]
"""The type of `approver=`: a function or an async function."""

_REMEDY = "Nothing was done; the session log has the details"


def approver_of(approver: AnyApprover | None) -> Approver | None:
    """Return an approver that always returns a Verdict, or raises Denied with the approver's exception as its cause."""
    if approver is None:
        return None

    def ask(question: Question) -> Verdict:
        try:
            return _verdict(_finished(approver(question)))
        except Cancelled:
            raise
        except Exception as error:
            from handrail.ops.text.display import one_line  # noqa: PLC0415  only when something is wrong

            why = one_line(f"{type(error).__name__}: {error}")
            raise Denied(question.tool, f"asking failed with {why}", _REMEDY) from error

    return ask


def _finished(answer: Any) -> Any:
    """Wait for the answer of an async approver: in the caller's event loop if there is one, else in a new one."""
    if not inspect.isawaitable(answer):
        return answer
    import anyio.from_thread  # noqa: PLC0415  only asynchronous approvers need it

    async def wait() -> Any:
        return await answer

    try:
        return anyio.from_thread.run(wait)
    except anyio.NoEventLoopError:
        import asyncio  # noqa: PLC0415  only asynchronous approvers need it

        return asyncio.run(wait())


def _verdict(answer: Any) -> Verdict:
    if isinstance(answer, bool):
        return Verdict.allow() if answer else Verdict.deny("the approver said no")
    if not isinstance(answer, Verdict):
        raise TypeError(f"the approver must return a Verdict or a bool, not {type(answer).__name__}")
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
