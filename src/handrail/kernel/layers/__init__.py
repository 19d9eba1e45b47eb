"""Stacks directories: a read-only lower one and an upper one that takes all changes."""
