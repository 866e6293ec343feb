"""`python -m mixedgm` -> the command line."""

import sys

from mixedgm.cli import main

if __name__ == "__main__":
    sys.exit(main())
