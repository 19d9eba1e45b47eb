"""Keeps the newest events, so that a browser that lost its connection can go on where it was."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

Event = dict[str, Any]


class _NumberedText(NamedTuple):
    number: int
    text: str


class EventRing:
    """Numbers events and hands them to the browsers that follow. All of it happens in one event loop."""

    def __init__(self, boot: str, most: int, most_bytes: int, state: Callable[[], Event]) -> None:
        """`boot` names this run of the server; `state` returns everything, for a browser that cannot go on."""
        self._boot, self._most, self._most_bytes, self._state = boot, most, most_bytes, state
        self._kept: deque[_NumberedText] = deque()
        self._bytes = self._last = 0
        self._news = asyncio.Event()
        self._closed = False

    def close(self) -> None:
        """Let every browser go: the server ends."""
        self._closed = True
        self._news.set()

    def add(self, event: Event) -> None:
        """Give an event a number, and hand it on."""
        self._last += 1
        text = json.dumps(event, separators=(",", ":"))
        self._kept.append(_NumberedText(self._last, text))
        self._bytes += len(text)
        while len(self._kept) > self._most or self._bytes > self._most_bytes:
            self._bytes -= len(self._kept.popleft().text)
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def follow(self, last_seen: str) -> AsyncIterator[tuple[str, str, str]]:
        """Yield events as (name, id, text): those after `last_seen`, or first the whole state if some are lost."""
        boot, _, number = last_seen.partition(".")
        at = int(number) if boot == self._boot and number.isdigit() else -1
        while not self._closed:
            if not self._knows(at):
                at = self._last
                yield "state", f"{self._boot}.{at}", json.dumps(self._state(), separators=(",", ":"))
            news = self._news
            for kept in self._after(at):
                at = kept.number
                yield "event", f"{self._boot}.{at}", kept.text
                await asyncio.sleep(0)  # others have their turn, and a browser that has gone is noticed
                if not self._knows(at):
                    break
            else:
                if at == self._last:
                    await news.wait()

    def _knows(self, at: int) -> bool:
        """Return whether every event after `at` is kept."""
        first = self._kept[0].number if self._kept else self._last + 1
        return first - 1 <= at <= self._last

    def _after(self, at: int) -> list[_NumberedText]:
        missing = self._last - at
        return list(self._kept)[len(self._kept) - missing :] if missing else []
