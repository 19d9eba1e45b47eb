"""Records every change of a workspace, with the contents before and after it."""
