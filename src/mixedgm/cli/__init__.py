"""Words typed in a terminal -> calls of the library and text, tables and pictures out."""

from mixedgm.cli.main import main

__all__ = ["main"]
