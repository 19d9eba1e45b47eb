"""Holds what the agent's loop needs of the model library: models, requests, room in the context, and trajectories."""
