"""The `headgate` command: one file per noun."""

from gateway.cli.app import main

__all__ = ["main"]
