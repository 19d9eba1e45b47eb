"""Judges the errors of a model's server: whether to ask again, when, and what the user reads."""

import httpx2
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    UserError,
)
from pydantic_ai.models import Model

from handrail.kernel.host.client_files import environment
from handrail.ops.secrets import HIDDEN, hide_secrets
from handrail.ops.text.display import one_line

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
_REASON_CHARS = 500
_ADVICE = (
    (ModelAuthenticationError, "check the key of the provider"),
    (ModelNotFoundError, "check the name of the model and the address of the server"),
)


class ModelFailedError(Exception):
    """The model cannot be asked, or does not answer."""


class ContextExceededError(ModelFailedError):
    """The conversation is longer than the model's context."""


class AnswerTooLargeError(Exception):
    """The model's server sends more than an answer can need."""


class AnswerCutError(Exception):
    """The stream of an answer ended before the answer."""


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


def reason(error: Exception, model: Model) -> str:
    """Return what happened and what to do, on one line, without the keys of the user."""
    said = _said(error, model)
    for key in _keys():
        said = said.replace(key, HIDDEN)
    return one_line(hide_secrets(said), _REASON_CHARS)


def _said(error: Exception, model: Model) -> str:
    if isinstance(error, TimeoutError):
        return f"the model sent nothing for {IDLE_SECONDS:.0f} seconds, or no whole answer in {ANSWER_SECONDS:.0f}"
    if isinstance(error, ModelHTTPError):
        advice = next((f"; {advice}" for kind, advice in _ADVICE if isinstance(error, kind)), "")
        return f"{_server(model)} answered {error.status_code}{_message_in(error.body)}{advice}"
    if isinstance(error, ModelConnectionError):
        return f"the connection to {_server(model)} failed: {error}"
    if isinstance(error, AgentRunError | UserError | AnswerTooLargeError | AnswerCutError | AnswerRefusedError):
        return str(error)
    return f"its answer does not follow its API ({type(error).__name__}: {error})"


def _server(model: Model) -> str:
    """Return the address of a model's server, without what may be secret in it."""
    url = httpx2.URL(model.base_url or "")
    return f"{url.scheme}://{url.netloc.decode()}" if url.host else "the server"


def _message_in(body: object) -> str:
    """Return what the body of an error says: its message, if it has one."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    said = inner.get("message") if isinstance(inner, dict) else inner
    return f": {said}" if said else ""


def _keys() -> list[str]:
    """Return the values of the variables whose names say that they are secret: servers repeat a wrong key."""
    given = [(f"{name}={value}", value) for name, value in environment().items() if len(value) >= _SHORTEST_KEY]
    return [value for text, value in given if hide_secrets(text) != text]
