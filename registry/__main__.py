"""`python -m headgate.registry --listen 127.0.0.1:8081 --data-dir DIR`: the schema registry in its own process."""

import sys

from headgate.registry.api.command_line import main

if __name__ == "__main__":
    sys.exit(main())
