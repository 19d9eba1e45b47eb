"""Runs commands and terminals in the sandbox, and bounds their output."""
