"""Examines what this machine can enforce."""
