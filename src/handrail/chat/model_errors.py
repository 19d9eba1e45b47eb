"""Judges the errors of a model's server: whether to ask again, when, and what the user reads."""

from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelHTTPError,
    ModelQuotaExceededError,
    UserError,
)

from handrail.kernel.host.client_files import environment
from handrail.ops.secrets import HIDDEN, hide_secrets

RETRIES = 4
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 120.0
"""The longest wait that a server may ask for; a run ends instead of waiting longer."""
IDLE_SECONDS = 300.0
"""How long the model may send nothing: some think for minutes."""
ANSWER_SECONDS = 3600.0
"""How long one answer may take."""
_TRANSIENT = (408, 409, 425, 429)
_SHORTEST_KEY = 8


class ModelFailedError(Exception):
    """The model cannot be asked, or does not answer."""


class ContextExceededError(ModelFailedError):
    """The conversation is longer than the model's context."""


class AnswerTooLargeError(Exception):
    """The model's server sends more than an answer can need."""


class AnswerRefusedError(Exception):
    """A filter of the model's server stopped the answer."""


def may_pass(error: Exception) -> bool:
    """Say whether the same request may succeed a moment later."""
    if isinstance(error, _FINAL) or (_asked_wait(error) or 0) > LONGEST_WAIT_SECONDS:
        return False
    if isinstance(error, ModelHTTPError):
        return error.status_code in _TRANSIENT or error.status_code >= 500
    return True


_FINAL = (UserError, ModelQuotaExceededError, ContentFilterError, AnswerTooLargeError, AnswerRefusedError)


def wait_after(error: Exception, attempt: int) -> float:
    """Return how many seconds to wait before the next attempt: as long as the server says, or ever longer."""
    asked = _asked_wait(error)
    return FIRST_WAIT_SECONDS * 2**attempt if asked is None else asked


def _asked_wait(error: Exception) -> float | None:
    return error.retry_after if isinstance(error, ModelAPIError) else None


def reason(error: Exception) -> str:
    """Return what happened, without the keys of the user."""
    if isinstance(error, TimeoutError):
        return f"the model sent nothing for {IDLE_SECONDS:.0f} seconds, or no whole answer in {ANSWER_SECONDS:.0f}"
    known = isinstance(error, AgentRunError | UserError | AnswerTooLargeError | AnswerRefusedError)
    said = str(error) if known else f"its answer does not follow its API ({type(error).__name__}: {error})"
    for key in _keys():
        said = said.replace(key, HIDDEN)
    return hide_secrets(said)


def _keys() -> list[str]:
    """Return the values of the variables whose names say that they are secret: servers repeat a wrong key."""
    given = [(f"{name}={value}", value) for name, value in environment().items() if len(value) >= _SHORTEST_KEY]
    return [value for text, value in given if hide_secrets(text) != text]
