"""Which edges there are, how strong, how certain, and in words."""
