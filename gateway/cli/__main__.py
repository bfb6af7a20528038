"""`python -m gateway.cli`: the `headgate` command where its script is not on the path."""

from gateway.cli.app import main

if __name__ == "__main__":
    main()
