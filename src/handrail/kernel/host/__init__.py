"""Reads and writes Handrail's own files, the user's terminal and the standard streams."""
