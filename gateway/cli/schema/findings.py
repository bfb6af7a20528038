"""Prints why schemas are incompatible: the answer of a registry, or the result of a comparison in this process."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from headgate.gateway.cli.output import visible

if TYPE_CHECKING:
    from headgate.registry.compatibility.incompatibility import Incompatibility

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


def as_json(found: "Iterable[Incompatibility]", version: int, *, new_reads_old: bool) -> list[dict[str, Any]]:
    """Incompatibilities in the form of the registry's answer."""
    return [
        {
            "version": version,
            "direction": "new-reads-old" if new_reads_old else "old-reads-new",
            "kind": one.kind,
            "path": one.path,
            "message": one.message,
            "advice": one.advice,
        }
        for one in found
    ]
