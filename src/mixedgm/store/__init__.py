"""A fitted model becomes one file without pickle, and back."""

from mixedgm.store.archive import FORMAT, FORMAT_VERSION, library_version
from mixedgm.store.model_file import load, save

__all__ = ["FORMAT", "FORMAT_VERSION", "library_version", "load", "save"]
