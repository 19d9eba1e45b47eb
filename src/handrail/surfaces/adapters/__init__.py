"""Offers the tools of a router to other frameworks: `from handrail.surfaces.adapters.langchain import tools`.

Each adapter needs its framework, which only that adapter imports.
"""
