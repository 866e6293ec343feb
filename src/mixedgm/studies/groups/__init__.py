"""How graphs differ between groups of rows."""
