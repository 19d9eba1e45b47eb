"""Offers the agent over the Agent Client Protocol, so that editors are its user interface. Needs `handrail[agent]`."""
