"""`python -m headgate`: the `headgate` command."""

from headgate.gateway.cli import main

if __name__ == "__main__":
    main()
