"""Where the rows live: the only code that passes over samples."""
