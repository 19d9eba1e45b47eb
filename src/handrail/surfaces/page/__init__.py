"""Serves the page: one small local web page on which a user sees and approves what agents do."""
