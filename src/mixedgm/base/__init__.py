"""Plumbing: errors, text, files, threads, processes, compiled functions."""
