"""Independent references: the same mathematics written twice, neither time with the package."""
