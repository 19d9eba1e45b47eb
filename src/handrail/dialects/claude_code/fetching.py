"""Declares the tool that fetches web pages."""

import time
from http import HTTPStatus

from handrail.dialects.claude_code.dialect import dialect
from handrail.model.effects import Effect
from handrail.model.warnings import PromptNotRun
from handrail.runtime.call import Call
from handrail.tools.schema import Params, field


class WebFetch(Params):
    url: str = field("The URL to fetch content from.", any_text=True)
    prompt: str = field("What to look for in the page. Handrail runs no prompt: it returns the page.", any_text=True)
    offset: int = field("The number of characters of the page to skip.", default=0, ge=0)


@dialect.tool("WebFetch", Effect.FETCH)
def web_fetch(p: WebFetch, c: Call) -> str:
    """Fetch a web page and return it as Markdown. The prompt is not run on it: read the page yourself."""
    began = time.monotonic()
    page = c.fetch(p.url, c.limits.claude_code_fetch_seconds)
    known = page.status_code in {each.value for each in HTTPStatus}
    c.metadata.update(bytes=page.content_length, code=page.status_code, url=page.final_url)
    c.metadata["codeText"] = HTTPStatus(page.status_code).phrase if known else ""
    c.metadata["durationMs"] = round((time.monotonic() - began) * 1000)
    c.warnings.append(PromptNotRun())
    last = p.offset + c.limits.claude_code_page_chars
    text = page.text[p.offset : last]
    if last < len(page.text):
        return f"{text}\n\n(Characters {p.offset}-{last} of {len(page.text)}; use offset {last} to read more.)"
    cut = f"\n\n(The page is longer than {c.limits.fetch_bytes} bytes; the rest was not fetched.)"
    return text + cut if page.truncated else text
