"""Questions in a real browser."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from selenium.webdriver.common.keys import Keys
from support.page_client import RunningPage, Working, running_page, writing

from handrail import Verdict, Workspace

if TYPE_CHECKING:
    from support.page_browser import Browser


def test_question_is_approved_by_button(root: Path, browser: "Browser") -> None:
    (root / "a.txt").write_text("old\n")
    with Workspace(root) as workspace:
        work = writing(workspace)
        card = browser.card()
        browser.find(".card .d-row", "new")
        assert "a.txt" in card.text
        browser.click(".card button.primary")
        assert work.result().success
        browser.find(".answered .yes .outcome", "Allowed on this page")
    assert browser.messages() == []


def test_question_is_denied_with_reason(root: Path, browser: "Browser") -> None:
    with Workspace(root) as workspace:
        work = writing(workspace)
        browser.card()
        browser.find(".card .reason").send_keys("write b.txt instead")
        browser.click(".card button.danger")
        assert "the user said no: write b.txt instead" in work.result().text
        browser.find(".answered .no .outcome", "Not allowed")


def test_question_always_with_edited_rule(root: Path, browser: "Browser") -> None:
    with Workspace(root) as workspace:
        work = writing(workspace, "src/a.py")
        browser.card()
        browser.click(".card .allow button", "Always")
        rule = browser.find(".card input.rule")
        assert rule.get_attribute("value") == "edit src/**"
        rule.clear()
        rule.send_keys("edit docs/**")
        browser.find(".says.wrong")
        rule.clear()
        rule.send_keys("edit src/*.py")
        browser.find(".says:not(.wrong)", "src/*.py")
        browser.click(".rule-form button.primary")
        assert work.result().success
        assert workspace.call("file", "file.write", {"path": "src/b.py", "content": "x\n"}).success


def test_two_questions_are_answered_by_keys_alone(root: Path, browser: "Browser") -> None:
    """The keys answer the oldest question; the whole page needs no mouse."""
    with Workspace(root) as one, Workspace(root) as two:
        first = writing(one, "a.txt")
        browser.find(".card:nth-of-type(1)")
        second = writing(two, "b.txt")
        browser.card(2)
        browser.press("n")
        assert not first.result().success
        browser.find(".card.current", "b.txt")
        browser.wait_for("return !document.querySelector('.questions.quiet')")
        browser.press("y")
        assert second.result().success
        browser.gone(".card")
        third = writing(one, "c.txt")
        browser.card()
        browser.press("a")
        browser.find(".card input.rule:focus")
        browser.press(Keys.ENTER)
        assert third.result().success
        call = browser.find(".call-row")
        browser.script("document.querySelector('.call-list').focus()")
        browser.press(Keys.TAB, Keys.ENTER)
        browser.find(".detail", "c.txt")
        browser.press(Keys.ESCAPE)
        browser.gone(".detail")
        assert call is not None


def test_key_pressed_as_the_question_appears_is_not_taken(root: Path, browser: "Browser") -> None:
    with Workspace(root) as workspace:
        browser.script(
            "new MutationObserver((_, watch) => { if (document.querySelector('.card')) { watch.disconnect();"
            " document.dispatchEvent(new KeyboardEvent('keydown', {key: 'y', bubbles: true})); window.pressed = true; }"
            " }).observe(document.body, {childList: true, subtree: true});"
        )
        work = writing(workspace)
        browser.wait_for("return window.pressed === true")
        browser.card()
        browser.find(".card:not(.sent)")
        browser.press("n")
        assert not work.result().success


def test_question_answered_in_another_place_leaves_the_page(root: Path, browser: "Browser") -> None:
    here = threading.Event()

    def approve(_: object) -> Verdict:
        here.wait(60)
        return Verdict.allow()

    with Workspace(root, approver=approve) as workspace:
        work = writing(workspace)
        browser.card()
        here.set()
        assert work.result().success
        browser.gone(".card")
        browser.find(".answered .outcome", "Allowed in the other place")


def test_output_of_running_command_comes_live_and_stop_ends_it(root: Path, browser: "Browser") -> None:
    with Workspace(root, approve="auto") as workspace:
        command = "echo first; until [ -e go ]; do sleep 0.05; done; echo second; sleep 600"
        work = Working(workspace, "copilot", "run_in_terminal", {"command": command})
        browser.click(".call-row.is-running")
        browser.find(".output", "first")
        (root / "go").touch()
        browser.find(".output", "second")
        browser.click(".detail button", "Stop")
        work.result()
        browser.find(".call-row:not(.is-running)")


def test_hostile_texts_stay_text(root: Path, browser: "Browser") -> None:
    """Scripts in file names, diffs, tool parameters and answers are shown, and none runs."""
    name = "<img src=x onerror=document.title=1>.txt"
    hostile = "<script>document.title='owned'</script>\n\u202etxt.exe \x1b[2J\n"
    with Workspace(root) as workspace:
        work = writing(workspace, name, hostile)
        browser.card()
        browser.find(".card .d-row", "<script>document.title='owned'</script>")
        browser.find(".card .d-row", "\\u202etxt.exe \\x1b[2J")
        browser.find(".card .diff-files", "<img src=x")
        browser.press("y")
        assert work.result().success
        browser.click(".call-row")
        browser.find(".detail .text", "<script>")
        assert browser.script("return document.querySelectorAll('#main img, #main script').length") == 0
        assert "Handrail" in browser.driver.title
    assert browser.messages() == []


def test_killed_server_tells_and_the_next_one_has_the_question(
    root: Path, browser: "Browser", server: RunningPage
) -> None:
    decided = threading.Event()
    with Workspace(root, approver=lambda _: decided.wait(60)) as workspace:
        work = writing(workspace)
        browser.card()
        server.end(kill=True)
        browser.find("#link[data-state=lost]", "handrail page")
        with running_page() as again:
            browser.open(again.address)
            browser.card()
            browser.press("y")
            assert work.result().success
        decided.set()


def test_lost_connection_repeats_and_loses_nothing(root: Path, browser: "Browser") -> None:
    with Workspace(root) as workspace:
        workspace.call("file", "file.list", {"path": "."})
        browser.find(".calls h2", "Calls (1)")
        browser.driver.execute_cdp_cmd("Network.enable", {})
        offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, **offline})
        for _ in range(30):
            workspace.call("file", "file.list", {"path": "."})
        browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **offline})
        browser.find(".calls h2", "Calls (31)")
        browser.find("#link[data-state=open]")


def test_long_diff_and_many_calls_stay_small_in_the_page(root: Path, browser: "Browser") -> None:
    """A diff of 5 MB and thousands of calls: only the rows in view exist."""
    with Workspace(root) as workspace:
        work = writing(workspace, "big.txt", "".join(f"line {n} {'x' * 40}\n" for n in range(100_000)))
        browser.card()
        browser.find(".card .d-row", "line 3 ")
        browser.script("const box = document.querySelector('.diff-body'); box.scrollTop = box.scrollHeight")
        browser.find(".card .d-row", "line 99999 ")
        assert browser.script("return document.querySelectorAll('.d-row').length") < 200
        browser.press("n")
        work.result()
        for _ in range(1000):
            workspace.call("file", "file.list", {"path": "."})
        browser.find(".calls h2", "Calls (1001)")
        assert browser.script("return document.querySelectorAll('.call-row').length") < 100
