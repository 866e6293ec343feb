"""Seeded defects, and which test catches each of them."""
