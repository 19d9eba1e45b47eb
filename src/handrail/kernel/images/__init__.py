"""Scales images down."""
