"""Confines commands: starts a sandbox, talks to its supervisor, and decides what commands see."""
