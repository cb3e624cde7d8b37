"""`python -m kvlint` is the command `kvlint`."""

from kvlint.cli import main

if __name__ == "__main__":
    main()
