"""Configures MCP clients for `handrail config`: what each client needs, and the texts of its files."""
