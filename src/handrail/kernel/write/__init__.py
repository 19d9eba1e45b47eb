"""Commits changes to files: all changes of a commit or none."""
