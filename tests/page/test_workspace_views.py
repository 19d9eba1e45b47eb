"""Rules, the doctor, history and frame times, in a real browser."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.keys import Keys
from support.command_line import ARGV
from support.pseudo_terminal import Terminal

from handrail import Workspace
from handrail.policy.rules import short_rule
from handrail.workspace import internals

if TYPE_CHECKING:
    from support.page_browser import Browser

FRAME_TIME = """const done = arguments[0], box = document.querySelector('.call-list'), times = [];
let last = performance.now(), n = 0;
const step = () => {
  const now = performance.now();
  times.push(now - last);
  last = now;
  box.scrollTop = (n * 997) % box.scrollHeight;
  if (++n < 60) requestAnimationFrame(step); else done(times.sort((a, b) => a - b)[30]);
};
requestAnimationFrame(step);"""


def test_rules_are_tested_disabled_and_removed(root: Path, browser: "Browser") -> None:
    with Workspace(root, approve="auto") as workspace:
        workspace.call("file", "file.list", {"path": "."})
        internals(workspace).rules.add(short_rule("edit docs/**"), "project")
        browser.find(".call-row")
        browser.click("#tabs a", "Rules")
        browser.find(".rule-item", "create, change and delete files below docs/")
        browser.find("input.trial").send_keys("edit docs/a.txt", Keys.ENTER)
        browser.find(".verdict", "Approved by project rule 1")
        browser.click(".rule-item .disable")
        browser.find(".rule-item.is-off")
        browser.find("input.trial").send_keys(Keys.ENTER)
        browser.find(".verdict", "No rule decides this call")
        browser.click(".rule-item .remove")
        browser.click(".rule-item .remove", "Remove for good")
        browser.gone(".rule-item")
        assert internals(workspace).rules.project.now() == []
    assert browser.messages() == []


@pytest.mark.sandbox
def test_doctor_shows_findings(root: Path, browser: "Browser") -> None:
    with Workspace(root, approve="auto") as workspace:
        workspace.call("file", "file.list", {"path": "."})
        browser.find(".call-row")
        browser.click("#tabs a", "Doctor")
        browser.find(".findings li", "Python")
        browser.find(".findings li", "sandbox")


def test_history_is_searched_marked_redone_and_restored(root: Path, browser: "Browser") -> None:
    with Workspace(root, approve="auto") as workspace:
        for path, text in (("a.txt", "one\n"), ("a.txt", "two\n"), ("b.txt", "three\n")):
            workspace.call("file", "file.write", {"path": path, "content": text})
        browser.find(".call-row")
        browser.click("#tabs a", "History")
        browser.find(".mark").send_keys("before lunch")
        browser.click(".set-mark")
        browser.find(".history-row", "before lunch")
        browser.find(".history .filter").send_keys("b.txt")
        browser.find(".history-row:only-child", "b.txt")
        browser.find(".history .filter").send_keys(Keys.BACKSPACE * 5 + "a.txt")
        browser.click(".history-row:nth-child(2)", "a.txt")
        browser.click(".restore")
        browser.find(".plan h3", "Restore")
        assert (root / "a.txt").read_text() == "two\n"
        browser.click(".do-it")
        browser.gone(".plan")
        assert (root / "a.txt").read_text() == "one\n"
        browser.click(".undo-last")
        browser.click(".do-it")
        browser.gone(".plan")
        assert (root / "a.txt").read_text() == "two\n"
        browser.click(".redo")
        browser.find(".plan h3", "Redo")
        browser.click(".do-it")
        browser.gone(".plan")
        assert (root / "a.txt").read_text() == "one\n"
        browser.find(".history .filter").send_keys(Keys.BACKSPACE * 5 + "lunch")
        browser.click(".history-row", "before lunch")
        browser.click(".to-mark")
        browser.click(".do-it")
        browser.gone(".plan")
        assert (root / "a.txt").read_text() == "two\n"
    assert browser.messages() == []


def test_question_answered_in_the_terminal_leaves_the_page(root: Path, browser: "Browser") -> None:
    """A real terminal and the page show the same question; the other place is told who has answered."""
    for answered_here in (True, False):
        name = f"{answered_here}.txt"
        with Terminal(*ARGV, "call", "file.write", f"path={name}", "content=x", "--root", str(root)) as terminal:
            terminal.until("Approve?")
            browser.card()
            if answered_here:
                terminal.send("y\n")
                browser.find(".answered .yes .outcome", "Allowed in the other place")
            else:
                browser.press("n")
                terminal.until("Answered on the page")
            browser.gone(".card")
            terminal.finish()
        assert (root / name).exists() is answered_here


def test_ten_thousand_calls_scroll_as_fast_as_a_hundred(root: Path, browser: "Browser") -> None:
    """The median time of a frame while the list jumps, so that every row in view is a new one."""
    with Workspace(root) as workspace:
        for _ in range(100):
            workspace.call("file", "file.list", {"path": "."})
        browser.find(".calls h2", "Calls (100)")
        few = browser.driver.execute_async_script(FRAME_TIME)
        for _ in range(10_000):
            workspace.call("file", "file.list", {"path": "."})
        browser.find(".calls h2", "Calls (10000)")
        many = browser.driver.execute_async_script(FRAME_TIME)
        assert many < 4 * few, (many, few)
        assert browser.script("return document.querySelectorAll('.call-row').length") < 100


def test_row_with_the_focus_keeps_it_and_the_view_while_calls_come(root: Path, browser: "Browser") -> None:
    with Workspace(root) as workspace:
        for n in range(60):
            workspace.call("file", "file.read", {"path": f"{n}.txt"})
        browser.find(".calls h2", "Calls (60)")
        browser.script("document.querySelector('.call-list').scrollTop = 600")
        browser.find(".call-row", "39.txt")
        browser.script(
            "[...document.querySelectorAll('.call-row')].find((each) => each.textContent.includes('35.txt')).focus()"
        )
        where = "return Math.round(document.activeElement.getBoundingClientRect().top)"
        before = browser.script(where)
        for n in range(20):
            workspace.call("file", "file.read", {"path": f"new {n}.txt"})
        browser.find(".calls h2", "Calls (80)")
        assert "35.txt" in browser.script("return document.activeElement.textContent")
        assert abs(browser.script(where) - before) <= 1
