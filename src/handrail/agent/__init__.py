"""Runs a model in a loop with the tools of a workspace, until its task is done or a budget is spent.

`Agent(workspace, model="anthropic:claude-opus-5-5").run("make the failing test pass")`. Needs `handrail[agent]`.
"""

from handrail.agent.agent import Agent
from handrail.agent.budget import Budget, Outcome

__all__ = ["Agent", "Budget", "Outcome"]
