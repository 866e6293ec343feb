"""Mixed graphical models: who is directly related to whom in a mixed table."""
