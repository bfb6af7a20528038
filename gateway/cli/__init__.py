"""The `headgate` command: one file per noun."""

from headgate.gateway.cli.app import main

__all__ = ["main"]
