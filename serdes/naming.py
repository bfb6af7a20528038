"""Under which subject a schema is registered: Confluent's three strategies, and whatever else a function can say."""

from collections.abc import Callable
from typing import TypeAlias

SubjectStrategy: TypeAlias = Callable[[str, bool, str | None], str]
"""(topic, is it the key, the full name of the record or message) → subject."""


class NoRecordName(ValueError):
    """The strategy needs the name of a record, and the schema has none."""


def topic_strategy(topic: str, is_key: bool, record_name: str | None) -> str:
    """`topic-key` or `topic-value`: one schema a topic. The default."""
    return f"{topic}-{'key' if is_key else 'value'}"


def record_strategy(topic: str, is_key: bool, record_name: str | None) -> str:
    """The record's full name: one schema wherever the record appears."""
    return _needed(record_name)


def topic_record_strategy(topic: str, is_key: bool, record_name: str | None) -> str:
    """`topic-` and the record's full name: several kinds of records in one topic, each evolving alone."""
    return f"{topic}-{_needed(record_name)}"


def _needed(record_name: str | None) -> str:
    if record_name is None:
        raise NoRecordName("this subject strategy needs a schema with a name: a record, a title, a message")
    return record_name
