"""What a model says about columns when others are known."""
