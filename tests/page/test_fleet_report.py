"""Tests the page of `handrail fleet report --html` in Chromium: what it shows, on a screen and on a phone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.command_line import handrail

if TYPE_CHECKING:
    from support.page_browser import Browser

EVIL = "<img src=x onerror='document.title=1'><script>document.title=1</script>\u202e\x1b[31m" + "x" * 300


def result(task: str, model: str, *, passed: bool, **more: Any) -> dict[str, Any]:
    return {
        "task": f"{task}@{model}",
        "name": task,
        "ok": True,
        "passed": passed,
        "model": model,
        "dialect": "codex",
        "seconds": 2.5,
        "calls": 3,
        "cost": 0.25,
        "tries": 1,
        "deaths": 0,
        "diverged": [],
        **more,
    }


@pytest.fixture
def report(chromium: "Browser", tmp_path: Path) -> Iterator["Browser"]:
    """Write the directory of a run, let the command make its page, and open that as a file."""
    out = tmp_path / "out"
    out.mkdir()
    results = [
        result("mend", "good", passed=True),
        result("mend", "weak", passed=False),
        result(EVIL, "good", passed=True, deaths=2),
        result(EVIL, "weak", passed=False, ok=False, error=EVIL),
    ]
    tasks = [{"id": each["task"], "name": each["name"]} for each in results]
    for name, lines in (("results", results), ("tasks", [*tasks, {"id": "left", "name": "left"}])):
        (out / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (out / "run.json").write_text(json.dumps({"tasks": "tasks.jsonl"}))
    done = handrail("fleet", "report", "out", "--html", "report.html", cwd=tmp_path)
    assert done.returncode == 0, done
    chromium.reset()
    chromium.driver.get((tmp_path / "report.html").as_uri())
    yield chromium
    chromium.reset()


def rows(browser: "Browser", title: str) -> list[list[str]]:
    """Return the cells of the table below a heading, as the browser shows them."""
    found: list[list[str]] = browser.driver.execute_script(
        "const at = [...document.querySelectorAll('h2')].find((each) => each.innerText === arguments[0]);"
        "return [...at.nextElementSibling.querySelectorAll('tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.innerText.trim()))",
        title,
    )
    return found


def test_report_page_shows_rates_by_model_dialect_and_task(report: "Browser") -> None:
    assert [row[:5] for row in rows(report, "By model")] == [
        ["good", "2", "2", "100 %", "0"],
        ["weak", "2", "0", "0 %", "1"],
    ]
    assert rows(report, "By dialect") == [["codex", "4", "2", "50 %", "1", "2.5", "12", "1.0000"]]
    assert [row[3] for row in rows(report, "By task")] == ["50 %", "50 %"]
    assert rows(report, "All results")[0][1:4] == ["4", "2", "50 %"]
    assert [row[1] for row in rows(report, "Results")] == ["passed", "failed", "passed", "not passed"]
    assert "1 of 5 tasks have no result yet" in report.find("p.note").text


def test_report_page_runs_nothing_of_results_and_styles_itself(report: "Browser") -> None:
    assert report.driver.title == "Fleet run out"
    assert report.driver.find_elements("css selector", "img, script") == []
    assert "<script>document.title=1</script>" in rows(report, "By task")[0][0]
    assert (
        report.driver.execute_script("return getComputedStyle(document.querySelector('table')).borderCollapse")
        == "collapse"
    )
    assert report.driver.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report_page_fits_phone_in_both_colours(scheme: str, report: "Browser") -> None:
    report.size(390, 800, phone=True)
    report.colours(scheme)
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert report.driver.execute_script(wide) <= 0
