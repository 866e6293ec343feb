"""The experiments of Lee and Hastie's paper, one script each, over the public API."""
