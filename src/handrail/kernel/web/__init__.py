"""Fetches web pages within limits, from checked addresses only."""
