"""Turns the caller's approver into a verdict: only a clear yes is one, and an approver that fails refuses."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, get_args

from handrail.model.approval import Approver, Keep, Question, Scope, Verdict
from handrail.model.faults import Cancelled, Denied
from handrail.model.withdrawal import Withdrawn

AnyApprover = Callable[[Question], Verdict | bool] | Callable[[Question], Awaitable[Verdict | bool]]
"""The type of `approver=`: a function or an async function."""

_REMEDY = "Nothing was done; the session log has the details"
_LOOK_SECONDS = 0.05


def approver_of(approver: AnyApprover | None) -> Approver | None:
    """Return an approver that always returns a Verdict, or raises Denied with the approver's exception as its cause."""
    if approver is None:
        return None

    def ask(question: Question) -> Verdict:
        return asked(question, lambda: finished(approver(question)))

    return ask


def asked(question: Question, ask: Callable[[], Any]) -> Verdict:
    """Return the verdict that an approver answers; raise Denied, with its exception as the cause, if it fails."""
    try:
        return verdict_of(ask())
    except (Cancelled, Withdrawn):
        raise
    except Exception as error:
        from handrail.ops.text.display import one_line  # noqa: PLC0415  only when something is wrong

        why = one_line(f"{type(error).__name__}: {error}")
        raise Denied(question.tool, f"asking failed with {why}", _REMEDY) from error


def finished(answer: Any, given_up: Callable[[], bool] | None = None) -> Any:
    """Wait for the answer of an async approver: in the caller's event loop if there is one, else in a new one.

    If `given_up` says that the answer is not needed any more, cancel the approver and raise Withdrawn.
    """
    if not inspect.isawaitable(answer):
        return answer
    import anyio.from_thread  # noqa: PLC0415  only asynchronous approvers need it

    async def wait() -> Any:
        if given_up is None:
            return await answer
        return await _unless(answer, given_up)

    try:
        return anyio.from_thread.run(wait)
    except anyio.NoEventLoopError:
        import asyncio  # noqa: PLC0415  only asynchronous approvers need it

        return asyncio.run(wait())


async def _unless(answer: Awaitable[Any], given_up: Callable[[], bool]) -> Any:
    """Wait for an answer; cancel it and raise Withdrawn once it is not needed any more."""
    import anyio  # noqa: PLC0415  only asynchronous approvers need it

    found: list[Any] = []

    async def take() -> None:
        try:
            found.append((await answer, None))
        except Exception as error:  # noqa: BLE001  a task group would wrap it
            found.append((None, error))
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take)
        while not given_up():  # noqa: ASYNC110  another thread says it
            await anyio.sleep(_LOOK_SECONDS)
        tasks.cancel_scope.cancel()
    if not found:
        raise Withdrawn
    said, error = found[0]
    if error is not None:
        raise error
    return said


def verdict_of(answer: Any) -> Verdict:
    """Return the verdict that an approver's answer means. Raises TypeError and ValueError for other answers."""
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
