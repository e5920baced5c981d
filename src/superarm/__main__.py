"""``python -m superarm`` is the command ``superarm``."""

from superarm.cli import main

if __name__ == "__main__":
    main()
