"""`python -m benchmarks`: run parts, print their rows, write results and the table."""

from benchmarks.cli import main

if __name__ == "__main__":
    main()
