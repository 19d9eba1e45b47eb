"""Attacks in a real browser: other sites, hostile texts, a program that takes the place of the server."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.page_client import RunningPage, Working, writing

from handrail import Workspace

if TYPE_CHECKING:
    from support.page_browser import Browser


@contextmanager
def site(page: str) -> Iterator[str]:
    """Serve a page on another port of this machine."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_other_site_can_neither_frame_nor_command_the_page(root: Path, browser: "Browser", server: RunningPage) -> None:
    """The browser has the cookie, and sends it to the same host; the question stays as it is."""
    attack = f"""<iframe src="{server.origin}/"></iframe>
    <form method="post" enctype="text/plain" target="hidden" action="{server.origin}/api/answer">
    <input name='{{"question":"p1:question","answer":"once","x":"' value='"}}'></form><iframe name="hidden"></iframe>
    <script>
    window.seen = [];
    document.forms[0].submit();
    const note = (what) => window.seen.push(what);
    for (const headers of [{{}}, {{"Content-Type": "application/json", "X-Handrail-Page": "x"}}])
      for (const path of ["/api/events", "/api/answer", "/api/enter", "/static/app.js"])
        for (const mode of ["cors", "no-cors"])
          fetch("{server.origin}" + path, {{method: "POST", mode, headers, body: "{{}}", credentials: "include"}})
            .then((answer) => note(answer.type === "opaque" ? "opaque" : "read"), () => note("blocked"));
    const made = document.createElement("script");
    made.src = "{server.origin}/static/app.js";
    made.onload = () => note("loaded");
    made.onerror = () => note("blocked");
    document.head.append(made);
    </script>"""
    with Workspace(root) as workspace:
        work = writing(workspace)
        browser.card()
        page = browser.driver.current_window_handle
        browser.driver.switch_to.new_window("window")
        with site(attack) as origin:
            browser.driver.get(origin)
            browser.wait_for("return window.seen.length === 17")
            assert {"read", "loaded"}.isdisjoint(browser.script("return window.seen"))
            browser.driver.switch_to.frame(0)
            assert browser.script("return document.querySelectorAll('.brand, #main').length") == 0
        browser.driver.close()
        browser.driver.switch_to.window(page)
        browser.card()
        browser.press("n")
        assert not work.result().success


def test_program_that_takes_the_port_of_an_ended_server_is_not_believed(
    browser: "Browser", server: RunningPage
) -> None:
    """It does not know the proof: nothing that it says is shown, and nothing more is sent to it."""
    state = {"questions": [], "sessions": [], "calls": [], "held": [], "now": 0, "quiet": 0.4, "boot": "x"}
    events = f"event: state\nid: x.1\ndata: {json.dumps(state)}\n\n"
    browser.script(
        "window.asked = []; window.fetch = async (path) => { window.asked.push(path); return new Response("
        "arguments[0], {headers: {'Content-Type': 'text/event-stream', 'X-Handrail-Server': 'guess'}}); }",
        events,
    )
    server.end(kill=True)
    browser.find("#link[data-state=closed]")
    assert browser.script("return sessionStorage.length") == 0
    for view in ("History", "Rules", "Terminals", "Now"):
        browser.click("#tabs a", view)
    assert browser.script("return window.asked") == ["/api/events"]


def test_hostile_tool_names_and_output_stay_text(root: Path, browser: "Browser") -> None:
    name = "<img src=x onerror=document.title=1>\u202e\x1b[2J"
    with Workspace(root, approve="auto") as workspace:
        workspace.call("file", name, {"<script>": "<script>document.title=2</script>"})
        workspace.call("copilot", "run_in_terminal", {"command": f"printf '%s' '{name}<b>bold</b>'"})
        browser.click(".call-row", "printf")
        browser.find(".detail .output", "<b>bold</b>")
        assert "\u202e" not in browser.find(".detail").text
        browser.script("document.querySelectorAll('.call-row')[1]?.click()")
        assert browser.script("return document.querySelectorAll('#main img, #main script, #main b').length") == 0
        assert browser.driver.title == "Handrail"
    assert browser.messages() == []


@pytest.mark.sandbox
def test_hostile_terminal_output_types_and_loads_nothing(root: Path, browser: "Browser") -> None:
    """A terminal emulator answers queries by typing, and opens links: here no byte of the program may do that."""
    queries = r"\033[6n\033[5n\033[c\033[>c\033[=c\033[?6n\033[?2026$p\033[18t\033[>q\033[?u"
    queries += r"\033P$qm\033\\\033]10;?\007\033]4;1;?\007"
    links = r"\033]8;;javascript:document.title=1\007click\033]8;;\007\033]52;c;aGk=\007\033]2;<b>title\007<img src=x>"
    program = f"printf '{queries}{links}\\n'; echo ready; read -s x; printf '{queries}'; echo again; sleep 600"
    with Workspace(root, approve="auto") as workspace:
        workspace.call("codex-2026", "exec_command", {"cmd": program, "tty": True, "yield_time_ms": 500})
        browser.click("#tabs a", "Terminals")
        browser.click(".held-row")
        browser.find(".held .xterm")
        shown = "return document.querySelector('.held .screen').textContent.includes"
        browser.wait_for(f"{shown}('ready')")
        browser.click(".typing input")
        browser.press("x", "\n")
        browser.wait_for(f"{shown}('again')")
        browser.script("document.querySelector('.xterm-screen').click()")
        typed = (
            "return performance.getEntriesByType('resource').filter((each) => each.name.endsWith('/api/type')).length"
        )
        assert browser.script(typed) <= 2
        assert browser.script("return document.querySelectorAll('#main img, #main a').length") == 0
        assert browser.driver.title == "Handrail"
        browser.click(".held button", "End")
    assert browser.messages() == []


def test_endless_line_is_shown_whole_and_stays_usable(root: Path, browser: "Browser") -> None:
    """What stands behind a million characters is not hidden to the right."""
    with Workspace(root) as workspace:
        work = writing(workspace, "a.js", "x" * 5_000_000 + " the end\n")
        browser.card()
        browser.script("const box = document.querySelector('.diff-body'); box.scrollTop = box.scrollHeight")
        browser.find(".card .d-row", "the end")
        browser.press("n")
        assert not work.result().success


def test_long_command_says_that_it_goes_on(root: Path, browser: "Browser") -> None:
    with Workspace(root) as workspace:
        command = "echo harmless" + "\n" * 300 + "rm -r ~"
        work = Working(workspace, "copilot", "run_in_terminal", {"command": command})
        browser.card()
        browser.find(".card .careful", "301 lines")
        browser.press("n")
        work.result()
