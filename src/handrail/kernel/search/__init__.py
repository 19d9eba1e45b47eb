"""Searches files by content, by name and by relevance, with ripgrep or a built-in engine."""
