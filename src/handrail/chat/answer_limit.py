"""Bounds how many bytes a model's server may send for one answer: it may be broken, or an attacker's."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
from pydantic_ai.models import Model

from handrail.chat.model_errors import AnswerTooLargeError
from handrail.model.limits import MIB
from handrail.ops.text.display import one_line

LARGEST = 64 * MIB
"""The most bytes of an answer; the longest honest ones have a few MiB."""


def limit_answers(model: Model) -> None:
    """Make the connections of a model, which is in use, end answers that are too large with AnswerTooLargeError."""
    client = getattr(model.provider, "_own_http_client", None)  # a new one for each run of the model
    if client is not None:
        client.headers["Accept-Encoding"] = "identity"  # a small compressed answer can fill the memory
        client.event_hooks["response"].append(_limit)


async def _limit(response: httpx2.Response) -> None:
    response.stream = _LimitedStream(response.stream, response.headers.get("Content-Encoding", "identity"))


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, encoding: str) -> None:
        self._stream, self._encoding, self._left = stream, encoding, LARGEST

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._encoding != "identity":
            raise AnswerTooLargeError(f"a compressed answer ({one_line(self._encoding, 20)}), which can have any size")
        async for data in self._stream:
            self._left -= len(data)
            if self._left < 0:
                raise AnswerTooLargeError(f"an answer of more than {LARGEST // MIB} MiB")
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()
