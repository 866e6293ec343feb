"""Questions about fitted models, in rooms by question."""
