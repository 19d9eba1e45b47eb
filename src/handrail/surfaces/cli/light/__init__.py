"""Runs `call` and `mcp` without click, and holds what other commands share with them."""
