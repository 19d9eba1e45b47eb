"""Holds the code that is sent into the sandbox and runs there."""
