"""`python -m silkline` is the command `silkline`."""

from silkline.cli import main

if __name__ == "__main__":
    main()
