"""A table and its options -> all findings at once, before any fit."""
