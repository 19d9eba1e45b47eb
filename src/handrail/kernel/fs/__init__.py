"""Opens, reads and checks files inside the root of a workspace."""
