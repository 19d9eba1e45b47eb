"""Reads the server name from the first message of a TLS client. Pure functions.

A client may spread the message over several records. A server that cannot use the offered keys asks for a second
message (a retry), and nothing but a check keeps the client from naming another server in it.
"""

from typing import NamedTuple

HANDSHAKE, CHANGE_CIPHER, APPLICATION = 22, 20, 23
ACCESS_DENIED = bytes.fromhex("15030300020231")
"""The alert that tells a client that it is refused."""
LONGEST_HELLO = 32 * 1024
_CLIENT_HELLO, _SERVER_HELLO = b"\x01", b"\x02"
_LONGEST_RECORD = 1 << 14
_MOST_RECORDS = 500
_SERVER_NAME = 0
_ENCRYPTED = frozenset({0xFE0D, 0xFFCE})
"""Extensions that hide the real server name inside an encrypted one."""
_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random value of a ServerHello that asks for a second ClientHello (RFC 8446, 4.1.3)."""
_RETRY_START = 5 + 4 + 2


class ClientHello(NamedTuple):
    """Holds what the first message of a TLS client says about the server that it wants."""

    name: str | None
    """The server name, in lower case; None if the message has none."""
    encrypted: bool
    """True if the message holds an encrypted server name, which no check can see."""
    size: int
    """The bytes of the message with its records."""


class _Fields:
    """Takes the fields of a message one after the other. Raises ValueError if the message is too short."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        if self._at + count > len(self._data):
            raise ValueError("a TLS message that ends too early")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> bytes:
        """Return the bytes after a length of `size` bytes."""
        return self.take(self.number(size))

    @property
    def more(self) -> bool:
        return self._at < len(self._data)


def read_hello(data: bytes) -> ClientHello | int:
    """Return the ClientHello at the start of a stream; or how many bytes are needed at least to go on.

    Raises ValueError if the stream does not begin with one, or with an overlong or malformed one.
    """
    message, at = b"", 0
    for _ in range(_MOST_RECORDS):
        head = data[at : at + 5]
        if head[:1] != bytes([HANDSHAKE])[: len(head)] or head[1:2] not in (b"", b"\x03"):
            raise ValueError("not TLS")
        length = int.from_bytes(head[3:5], "big") if len(head) == 5 else 1
        if not 0 < length <= _LONGEST_RECORD:
            raise ValueError("a TLS record of a wrong length")
        message += data[at + 5 : at + 5 + length]
        if message[:1] not in (b"", _CLIENT_HELLO):
            raise ValueError("a TLS stream that does not begin with a ClientHello")
        wanted = 4 + int.from_bytes(message[1:4], "big") if len(message) >= 4 else LONGEST_HELLO
        if wanted > LONGEST_HELLO or len(message) > wanted:
            raise ValueError("a ClientHello of a wrong length")
        if len(head) < 5 or at + 5 + length > len(data):
            return at + 5 + (length if len(head) == 5 else 0)
        at += 5 + length
        if len(message) == wanted:
            return _parsed(message[4:], at)
    raise ValueError("a ClientHello in too many records")


def _parsed(body: bytes, size: int) -> ClientHello:
    fields = _Fields(body)
    fields.take(2 + 32)
    for length in (1, 2, 1):  # session, ciphers, compression
        fields.vector(length)
    extensions = _Fields(fields.vector(2) if fields.more else b"")
    if fields.more:
        raise ValueError("a ClientHello with more behind its end")
    found: dict[int, bytes] = {}
    while extensions.more:
        kind, value = extensions.number(2), extensions.vector(2)
        if kind in found:
            raise ValueError("a ClientHello that repeats an extension")
        found[kind] = value
    name = _name(found[_SERVER_NAME]) if _SERVER_NAME in found else None
    return ClientHello(name, bool(_ENCRYPTED & found.keys()), size)


def _name(extension: bytes) -> str:
    outer = _Fields(extension)
    names = _Fields(outer.vector(2))
    kind, name = names.number(1), names.vector(2)
    if outer.more or names.more or kind != 0 or not name.isascii():
        raise ValueError("a ClientHello without exactly one server name")
    return name.decode("ascii").lower()


def asks_for_retry(answer: bytes) -> bool | None:
    """Return whether a server's first bytes ask for a second ClientHello; None if more bytes are needed."""
    if answer[:1] not in (b"", bytes([HANDSHAKE])) or answer[5:6] not in (b"", _SERVER_HELLO):
        return False
    end = _RETRY_START + len(_RETRY)
    return answer[_RETRY_START:end] == _RETRY if len(answer) >= end else None


def skip_records(data: bytes) -> int | None:
    """Return where the next handshake record begins after a retry; None if more bytes are needed.

    A client may send early data and a marker in between, which the server ignores. Raises ValueError for others.
    """
    at = 0
    while at + 5 <= len(data):
        if data[at] == HANDSHAKE:
            return at
        if data[at] not in (CHANGE_CIPHER, APPLICATION):
            raise ValueError("a TLS stream that does not go on with a ClientHello")
        at += 5 + int.from_bytes(data[at + 3 : at + 5], "big")
    return None
