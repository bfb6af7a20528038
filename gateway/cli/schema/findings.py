"""Prints why schemas are incompatible: the answer of a registry, or the result of a comparison in this process."""

from collections.abc import Callable
from typing import Any

from headgate.gateway.cli.output import visible

Write = Callable[[str], None]


def print_answer(answer: dict[str, Any], write: Write) -> None:
    """The reasons of a verbose compatibility check. Confluent's registry returns messages only."""
    listed = answer.get("incompatibilities")
    for one in listed or ():
        version = f"version {one['version']}" if isinstance(one["version"], int) else one["version"]
        write(visible(f"{one['kind']} {one['path']} ({version}, {one['direction']}): {one['message']}"))
        if one.get("advice"):
            write(visible(f"  {one['advice']}"))
    if not listed:
        for message in answer.get("messages") or ():
            write(visible(message))
