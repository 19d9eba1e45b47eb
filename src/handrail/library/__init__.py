"""Holds what a `Workspace` is made of: sessions, history, layers, settings, and the methods for programs."""
