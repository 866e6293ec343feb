"""A path and rows -> the point, or the graph, that a criterion chooses."""
