"""Answers the page's requests about rules, and about what this machine offers."""

import hashlib
import json
from typing import Any

from anyio import to_thread
from starlette.routing import Route

from handrail.dialects import find_dialect
from handrail.errors import RuleError
from handrail.kernel.doctor.checks import examine
from handrail.kernel.host.use_counts import Count
from handrail.ops.text.display import one_line, visible
from handrail.policy.policy import FILE
from handrail.policy.rule_match import PlacedRule
from handrail.surfaces.approval_text import SCOPE_WORDS
from handrail.surfaces.doctor_report import machine_findings, workspace_findings
from handrail.surfaces.page.page_app import BadRequest, Json, posted
from handrail.surfaces.page.page_hub import PageHub
from handrail.surfaces.page.page_workspaces import in_workspace, known_root
from handrail.surfaces.rule_trial import short_call, summary, try_call
from handrail.workspace import Workspace, internals

_LINE = 1000
_CALL = 10_000
_STORED = ("project", "user")


class PageRules:
    """Lists, tests and changes the rules of a workspace, and runs the doctor there."""

    def __init__(self, hub: PageHub) -> None:
        self._hub = hub

    def routes(self) -> list[Route]:
        """Return the routes that this class answers."""
        paths = {"/api/rules": _listed, "/api/rule-change": _changed, "/api/rule-test": _tested}
        return [Route(path, posted(self._with(work)), methods=["POST"]) for path, work in paths.items()] + [
            Route("/api/doctor", posted(self.doctor), methods=["POST"])
        ]

    def _with(self, work: Any) -> Any:
        """Return a handler that opens the workspace and does a piece of work in a thread."""

        async def handle(body: Json) -> Json:
            root = known_root(self._hub, body)
            found: Json = await to_thread.run_sync(in_workspace, root, lambda workspace: work(workspace, body))
            return found

        return handle

    async def doctor(self, body: Json) -> Json:
        """Return what the machine offers, and try the sandbox of a workspace."""
        root = known_root(self._hub, body)
        findings = await to_thread.run_sync(
            in_workspace, root, lambda workspace: [*machine_findings(examine(root)), *workspace_findings(workspace)]
        )
        return {"findings": [[one_line(each.name, 100), each.good, visible(each.says)] for each in findings]}


def _listed(workspace: Workspace, _body: Json) -> Json:
    rules = internals(workspace).rules
    counts = rules.tally.read() if rules.tally else {}
    return {
        "rules": [
            _shown(placed, None if placed.scope == FILE else counts.get(rules.key(placed))) for placed in rules.placed()
        ]
    }


def _shown(placed: PlacedRule, count: Count | None) -> Json:
    rule = placed.rule
    where = SCOPE_WORDS.get(placed.scope, "by the project's .handrail.toml").capitalize()
    return {
        "scope": placed.scope,
        "number": placed.number,
        "same": _digest(placed),
        "rule": one_line(rule.named, _LINE),
        "sentence": one_line(f"{where}, {'denies' if rule.deny else 'allows'} the agent to {rule.sentence}", _LINE),
        "deny": rule.deny,
        "enabled": rule.enabled,
        "expired": rule.expired,
        "until": rule.expires_at.timestamp() if rule.expires_at else None,
        "sandbox": rule.sandbox,
        "unattended": rule.unattended,
        "used": count.times if count else 0,
        "last": one_line(count.last.isoformat(), 40) if count else "",
        "stored": placed.scope in _STORED,
    }


def _digest(placed: PlacedRule) -> str:
    """Return what names a rule as the user saw it, so that a click changes no other rule."""
    return hashlib.sha256(repr(placed).encode(errors="surrogateescape")).hexdigest()[:32]


def _changed(workspace: Workspace, body: Json) -> Json:
    rules, act = internals(workspace).rules, body.get("do")
    found = [each for each in rules.placed() if each.scope in _STORED and _digest(each) == body.get("same")]
    if not found:
        raise BadRequest("this rule has changed since: look again", 409)
    placed = found[0]
    rule_file = rules.file_of(placed.scope)
    if act == "remove":
        rule_file.remove(placed.number, expected=placed.rule)
    elif act in ("enable", "disable"):
        rule_file.enable(placed.number, enabled=act == "enable", expected=placed.rule)
    else:
        raise BadRequest("do must be enable, disable or remove")
    return _listed(workspace, body)


def _tested(workspace: Workspace, body: Json) -> Json:
    """Say which rule would decide a call, in the form of a rule: `git push`, `edit a.py`; or a tool with JSON."""
    text = body.get("call")
    if not isinstance(text, str) or not text.strip() or len(text) > _CALL:
        raise BadRequest(f"write a call of at most {_CALL} characters")
    dialect, tool, params = _call(text.strip())
    trial = try_call(workspace, dialect, tool, params)
    decision = internals(workspace).rules.decide(trial.question) if trial.question else None
    others = [f"{placed.name}: {why}" for placed, why in (decision.others if decision else ())]
    return {"says": visible(summary(decision, trial)), "others": [visible(each) for each in others]}


def _call(text: str) -> tuple[str, str, Json]:
    """Return the dialect, the tool and the parameters that a text names. Raises RuleError."""
    tool, _, rest = text.partition(" ")
    dialects = find_dialect(tool) if rest.lstrip().startswith("{") else []
    if not dialects:
        return short_call(text)
    try:
        params = json.loads(rest)
    except (ValueError, RecursionError) as error:
        raise RuleError(f"the parameters are not valid JSON: {error}") from None
    return dialects[0], tool, params
