"""`python -m stress`: run campaigns where they were left, and write their record."""

from stress.cli import main

if __name__ == "__main__":
    main()
