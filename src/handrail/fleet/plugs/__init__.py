"""Plugs workspaces of a fleet into harnesses. Each module needs the package of its harness."""
