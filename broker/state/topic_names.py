"""Kafka's rules for topic names: legal characters, collisions of metric names, internal topics."""

import re
from collections.abc import Iterable

TOPIC_NAME_LENGTH_MAX = 249
"""A partition's folder is `<topic>-<number>` and, while it is deleted, longer by a suffix; file names end at 255."""

METADATA_TOPIC = "__cluster_metadata"
OFFSETS_TOPIC = "__consumer_offsets"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, "__transaction_state", "__share_group_state"})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")


def topic_name_fault(name: str) -> str | None:
    """What is wrong with the name, in Kafka's words; None when it is legal."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{TOPIC_NAME_LENGTH_MAX}"
        )
    if not _LEGAL.match(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


def collision_key(name: str) -> str:
    """Two names with the same key differ only in '.' and '_', and would be one name where metrics are reported."""
    return name.replace(".", "_")


class TakenNames:
    """Names that exist, asked by their collision key: built once per request, however many topics it names."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names_by_key: dict[str, list[str]] = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        self._names_by_key.setdefault(collision_key(name), []).append(name)

    def colliding_with(self, name: str) -> str | None:
        """Another name that `name` collides with."""
        others = (other for other in self._names_by_key.get(collision_key(name), ()) if other != name)
        return next(others, None)
