"""Finds git directories, and keeps commands from planting anything that git would run."""
