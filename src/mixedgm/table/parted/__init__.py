"""A table in parts -> its design, part by part, never put together."""
