"""One table and a recipe -> its task and its path: warm starts, refits, completion of gaps."""
