"""The connection of a process with the page's server, against a socket of the test."""

import json

from handrail.kernel.page.page_link import PageLink
from handrail.kernel.page.page_listener import PageListener
from handrail.surfaces.page.live_output import LiveOutput

PATIENCE = 60


def test_page_link_sends_everything_that_was_queued_at_once() -> None:
    """More than one turn of its thread takes, while the socket accepts all of it: nothing more comes to wake it."""
    listener = PageListener()
    listener.socket.settimeout(PATIENCE)
    link = PageLink(1 << 26)
    assert link.there()
    server, _ = listener.socket.accept()
    server.settimeout(PATIENCE)
    with server, server.makefile("rb") as lines:
        assert json.loads(lines.readline())["type"] == "hello"
        for n in range(300):
            link.send({"n": n, "text": "x" * 2000})
        assert [json.loads(lines.readline())["n"] for _ in range(300)] == [*range(300)]
    listener.close()


def test_page_link_gives_up_a_server_that_does_not_read() -> None:
    listener = PageListener()
    link = PageLink(1 << 20)
    assert link.there()
    for _ in range(3000):
        link.send({"text": "x" * 1000}, 1000)
    assert not link.open
    listener.close()


def test_live_output_numbers_its_pieces_and_repeats_the_last_number() -> None:
    output = LiveOutput(8)
    assert output.add(b"first\n", 0) == {"n": 1, "skipped": 0, "data": "first\n"}
    assert output.add(b"second\n", 3)["n"] == 2
    assert output.shown() == {"n": 2, "skipped": 8, "data": "\nsecond\n"}
