"""A table and options -> a fitted model: the street through all rooms above."""
