"""History, terminals, small screens, accessibility and the picture, in a real browser."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.keys import Keys
from support.page_client import Working, writing

from handrail import Workspace

if TYPE_CHECKING:
    from support.page_browser import Browser

HERE = Path(__file__).parent
AXE, PICTURES = os.environ.get("HANDRAIL_AXE", ""), os.environ.get("PAGE_PICTURES", "")
CART = '''"""Adds up a cart."""

from decimal import Decimal


def total(items):
    result = 0
    for item in items:
        result += item.price * item.count
    return result
'''
PATCH = {
    "find": "    result = 0\n    for item in items:\n        result += item.price * item.count\n    return result",
    "replace": '    """Return the sum of all items, rounded to cents."""\n'
    "    amounts = (item.price * item.count for item in items)\n"
    '    return sum(amounts, Decimal(0)).quantize(Decimal("0.01"))',
}


def test_history_undoes_one_entry_after_showing_it(root: Path, browser: "Browser") -> None:
    with Workspace(root, approve="auto") as workspace:
        workspace.call("file", "file.write", {"path": "a.txt", "content": "one\n"})
        workspace.call("file", "file.write", {"path": "b.txt", "content": "two\n"})
        browser.find(".call-row")
        browser.click("#tabs a", "History")
        browser.click(".history-row", "a.txt")
        browser.find(".detail .d-row", "one")
        browser.click(".undo-this")
        browser.find(".plan", "Undo entry 1: 1 change")
        assert (root / "a.txt").exists()
        browser.click(".do-it")
        browser.gone(".plan")
        browser.find(".history-row.undone", "a.txt")
        assert not (root / "a.txt").exists()
        browser.click(".history-row:not(.undone)", "b.txt")
        browser.click(".undo-session")
        browser.find(".plan", "Undo entry 2")
        browser.click(".do-it")
        browser.gone(".plan")
        assert not (root / "b.txt").exists()
    assert browser.messages() == []


def test_history_does_only_what_the_plan_showed(root: Path, browser: "Browser") -> None:
    with Workspace(root, approve="auto") as workspace:
        workspace.call("file", "file.write", {"path": "a.txt", "content": "one\n"})
        browser.find(".call-row")
        browser.click("#tabs a", "History")
        browser.click(".undo-last")
        browser.find(".plan .do-it")
        workspace.call("file", "file.write", {"path": "b.txt", "content": "two\n"})
        browser.click(".do-it")
        browser.find(".plan [role=alert]", "changed since")
        assert (root / "a.txt").exists()
        assert (root / "b.txt").exists()


@pytest.mark.sandbox
def test_terminal_shows_output_and_takes_typing_that_the_model_never_sees(root: Path, browser: "Browser") -> None:
    with Workspace(root, approve="auto") as workspace:
        program = 'read -p "name? " name; echo "read ${#name} letters"; read rest'
        started = workspace.call("codex-2026", "exec_command", {"cmd": program, "tty": True, "yield_time_ms": 500})
        assert started.success, started.text
        browser.click("#tabs a", "Terminals")
        browser.click(".held-row")
        browser.find(".xterm")
        browser.click(".typing input")
        browser.press("s", "e", "s", "a", "m", "e", Keys.ENTER)
        browser.wait_for("return document.querySelector('.held .screen').textContent.includes('read 6 letters')")
        assert browser.script("return document.querySelector('.held .screen').textContent.includes('sesame')")
        seen = workspace.call("codex-2026", "write_stdin", {"session_id": 1, "chars": "", "yield_time_ms": 500}).text
        assert "read 6 letters" in seen
        assert "sesame" not in seen + started.text
        browser.click(".held button", "End")
        browser.gone(".held-row.is-running")
    assert browser.messages() == []


def _busy(browser: "Browser", root: Path, workspace: Workspace) -> list[Working]:
    """Fill the page: calls, a diff and a command that wait."""
    (root / "src").mkdir()
    (root / "src" / "cart.py").write_text(CART)
    for tool, params in (
        ("file.list", {"path": "."}),
        ("file.search", {"query": "total"}),
        ("file.read", {"path": "src/cart.py"}),
        ("file.read", {"path": "src/basket.py"}),
    ):
        workspace.call("file", tool, params)
    first = Working(workspace, "file", "file.patch", {"path": "src/cart.py", "patches": [PATCH]})
    browser.find(".card .d-row", "amounts")
    second = Working(workspace, "copilot", "run_in_terminal", {"command": "python -m pytest tests && git push"})
    browser.card(2)
    return [first, second]


def _leave(browser: "Browser", works: list[Working]) -> None:
    browser.click("#tabs a", "Now")
    for work in works:
        browser.card()
        browser.press("n")
        work.result()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_passes_the_accessibility_check(root: Path, browser: "Browser", scheme: str) -> None:
    if not AXE:
        pytest.skip("HANDRAIL_AXE names no axe-core: use make test-page")
    browser.colours(scheme)
    with Workspace(root) as workspace:
        works = _busy(browser, root, workspace)
        for view in ("Now", "History", "Terminals"):
            browser.click("#tabs a", view)
            browser.find("#main h2")
            browser.wait_for("return !document.querySelector('.quiet') && document.getAnimations().length < 3")
            browser.script(Path(AXE).read_text())
            found = browser.driver.execute_async_script(
                "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then((found) => done("
                "found.violations.map((each) => [each.id, each.nodes.map((node) => node.target.join(' '))])))"
            )
            assert found == [], json.dumps(found, indent=1)
        _leave(browser, works)


def test_phone_width_needs_no_sideways_scrolling(root: Path, browser: "Browser") -> None:
    browser.size(390, 844, phone=True)
    with Workspace(root) as workspace:
        works = _busy(browser, root, workspace)
        for view in ("Now", "History", "Terminals"):
            browser.click("#tabs a", view)
            browser.find("#main h2")
            assert browser.script("return document.documentElement.scrollWidth <= innerWidth")
        browser.click("#tabs a", "Now")
        browser.card()
        buttons = "[...document.querySelectorAll('.card-actions button')]"
        heights = browser.script(f"return {buttons}.map((each) => each.getBoundingClientRect().height)")
        assert min(heights) >= 44
        if PICTURES:
            browser.picture(f"{PICTURES}/phone.png")
        _leave(browser, works)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_picture_of_the_page_is_made(root: Path, browser: "Browser", scheme: str) -> None:
    """With PAGE_PICTURES, a directory, the picture of the README and of its dark side are written there."""
    browser.colours(scheme)
    browser.size(1180, 860)
    shop = root / "shop"
    shop.mkdir()
    with Workspace(shop) as workspace:
        works = _busy(browser, shop, workspace)
        browser.wait_for("return !document.querySelector('.quiet')")
        assert browser.script("return document.querySelectorAll('.card').length") == 2
        if PICTURES:
            browser.picture(f"{PICTURES}/page-{scheme}.png")
        _leave(browser, works)


def test_second_writer_is_listed_with_its_workspace(root: Path, browser: "Browser") -> None:
    other = root / "other"
    other.mkdir()
    with Workspace(root) as one, Workspace(other) as two:
        first, second = writing(one), writing(two)
        names = {browser.card(n).find_element("css selector", ".workspace").text for n in (1, 2)}
        assert names == {root.name, "other"}
        browser.press("n")
        browser.find(".card:only-child")
        browser.card()
        browser.press("n")
        assert not first.result().success
        assert not second.result().success
