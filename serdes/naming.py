"""Subject name strategies: Confluent's three strategies. Any function with the same signature works, too."""

from collections.abc import Callable
from typing import TypeAlias

SubjectStrategy: TypeAlias = Callable[[str, bool, str | None], str]
"""(topic, whether it is the key, full name of the record or message) → subject."""


class NoRecordName(ValueError):
    """The strategy needs a record name, and the schema has none."""


def topic_strategy(topic: str, is_key: bool, record_name: str | None) -> str:
    """`topic-key` or `topic-value`: one schema per topic. The default."""
    return f"{topic}-{'key' if is_key else 'value'}"


def record_strategy(topic: str, is_key: bool, record_name: str | None) -> str:
    """The full record name: one schema for all topics."""
    return _needed(record_name)


def topic_record_strategy(topic: str, is_key: bool, record_name: str | None) -> str:
    """`topic-` and the full record name: several record types per topic, each with its own versions."""
    return f"{topic}-{_needed(record_name)}"


def _needed(record_name: str | None) -> str:
    if record_name is None:
        raise NoRecordName("this subject name strategy needs a schema with a name (a record, a title or a message)")
    return record_name
