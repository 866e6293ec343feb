"""What is missing, what that means, and rows completed."""
