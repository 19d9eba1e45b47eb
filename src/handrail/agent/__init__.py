"""Runs a model in a loop with the tools of a workspace, until its task is done or a budget is spent.

`Agent(workspace, model="anthropic:claude-opus-5-5").run("make the failing test pass")`. Needs `handrail[agent]`.

Read `loop.py` first: ask, run the calls, repeat. Then `agent.py`, which starts and ends runs, and `budget.py`.
What they use of the model library is in `handrail/chat/`: `asker.py` asks for one answer, `trajectory.py` keeps the
steps, `context_window.py` makes room, `model_choice.py` makes the model.
"""

from handrail.agent.agent import Agent
from handrail.agent.budget import Budget, Outcome

__all__ = ["Agent", "Budget", "Outcome"]
