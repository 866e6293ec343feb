"""Times on a GPU."""
