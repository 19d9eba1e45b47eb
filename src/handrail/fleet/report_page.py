"""Draws the report of a run as one HTML page: it loads nothing, runs nothing, and shows all text as text."""

import base64
import hashlib
import html
from typing import Any

from handrail.fleet.run_report import COLUMNS, RunReport, Share, cells
from handrail.ops.text.display import one_line

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #2a8f4f; --bad: #c0392b; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
div { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: right; vertical-align: top; }
th:first-child, td:first-child, td.text, th:last-child.text { text-align: left; overflow-wrap: anywhere; }
meter { width: 6rem; vertical-align: middle; }
.passed { color: var(--good); } .failed { color: var(--bad); }
.note { opacity: .75; }
"""
_ERROR_CHARS = 300


def page(report: RunReport, title: str) -> str:
    """Return the page."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    missing = report.tasks - report.total.results
    left = f'<p class="note">{missing} of {report.tasks} tasks have no result yet.</p>' if missing else ""
    parts = "".join(_table(f"By {name}", name, shares) for name, shares in report.parts() if shares)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_text(title)}</title><style>{_STYLE}</style></head>
<body><h1>{_text(title)}</h1>{left}
{_table("All results", "", [report.total])}{parts}{_results(report.results)}
</body></html>
"""


def _text(value: Any, width: int = 200) -> str:
    """Return a text of a model or a user as HTML: the browser shows every character, and none works as markup."""
    return html.escape(one_line(str(value), width), quote=True)


def _table(title: str, first: str, shares: list[Share]) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in (first, *COLUMNS))
    rows = "".join(f"<tr><td>{_text(share.name)}</td>{_cells(share)}</tr>" for share in shares)
    return f"<h2>{_text(title)}</h2><div><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def _cells(share: Share) -> str:
    made = [f"<td>{_text(each)}</td>" for each in cells(share)]
    if share.judged:
        rate = share.passed / share.judged
        made[2] = f'<td><meter min="0" max="1" value="{rate:.3f}"></meter> {_text(share.rate)}</td>'
    return "".join(made)


def _results(results: list[dict[str, Any]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("task", "result", "s", "calls", "deaths"))
    head += "<th class='text'>remark</th>"
    rows = "".join(_result(each) for each in results)
    return f"<h2>Results</h2><div><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def _result(each: dict[str, Any]) -> str:
    word, kind = _judged(each)
    remark = each.get("error") or ("diverged, and began again" if each.get("diverged") else "")
    return (
        f"<tr><td>{_text(each.get('task'))}</td><td class='{kind}'>{word}</td>"
        f"<td>{_text(each.get('seconds'))}</td><td>{_text(each.get('calls'))}</td><td>{_text(each.get('deaths'))}</td>"
        f"<td class='text'>{_text(remark, _ERROR_CHARS)}</td></tr>"
    )


def _judged(each: dict[str, Any]) -> tuple[str, str]:
    if not each.get("ok"):
        return "failed", "failed"
    if each.get("passed") is None:
        return "done", ""
    return ("passed", "passed") if each["passed"] is True else ("not passed", "failed")
