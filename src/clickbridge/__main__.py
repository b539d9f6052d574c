"""`python -m clickbridge`: the command line of the interpreter at hand, whatever is on the PATH."""

from clickbridge.cli.main import main

if __name__ == "__main__":
    main()
