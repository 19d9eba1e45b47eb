"""Holds the commands that change files back: undo, redo, restore and mark."""
