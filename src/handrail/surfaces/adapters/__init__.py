"""Offers the tools of a router to agent frameworks: `from handrail.surfaces.adapters.langchain import tools`.

Each adapter imports its framework; no other module does.
"""
