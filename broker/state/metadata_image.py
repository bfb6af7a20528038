"""The entries of the metadata journal, and the state that they replay to.

An entry that cannot be read is skipped and reported, never raised: one bad entry must not keep the broker from
starting. Its caller decides what may have been lost with it.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from headgate.broker.state.settings import Scope
from headgate.broker.state.topic_names import topic_name_fault

_TOPIC_KEY = b"topic\x00"
_BROKER_KEY = b"broker\x00"
_PRODUCER_IDS_KEY = b"producer-ids"

# Producer ids are signed 64-bit numbers.
producer_id_max = 2**63 - 1


class TopicEntry(msgspec.Struct):
    partitions: int
    overrides: dict[str, str]


TopicKey: TypeAlias = tuple[str, uuid.UUID]
"""Name and id of a topic."""


@dataclass(slots=True)
class MetadataImage:
    topics: dict[TopicKey, TopicEntry] = field(default_factory=dict)
    deleted: set[uuid.UUID] = field(default_factory=set)
    deleted_names: set[str] = field(default_factory=set)
    broker_overrides: dict[Scope, Mapping[str, str]] = field(default_factory=dict)
    producer_ids_end: int | None = None
    unreadable: list[str] = field(default_factory=list)
    """What was skipped, one description per entry."""


def replay(entries: Iterable[tuple[bytes, bytes | None]]) -> MetadataImage:
    image = MetadataImage()
    for number, (key, value) in enumerate(entries):
        try:
            _apply(image, key, value)
        except (ValueError, msgspec.MsgspecError) as error:
            image.unreadable.append(f"entry {number} with key {key[:80]!r} cannot be read: {error}")
    return image


def _apply(image: MetadataImage, key: bytes, value: bytes | None) -> None:
    """Raises ValueError or MsgspecError. Keys of other kinds are of a later version and ignored."""
    if key.startswith(_TOPIC_KEY):
        name, topic_id = _split_topic_key(key)
        if value is None:
            image.topics.pop((name, topic_id), None)
            image.deleted.add(topic_id)
            image.deleted_names.add(name)
        else:
            entry = msgspec.json.decode(value, type=TopicEntry)
            if entry.partitions < 1:
                raise ValueError(f"{entry.partitions} partitions")
            image.topics[name, topic_id] = entry
            image.deleted_names.discard(name)
    elif key.startswith(_BROKER_KEY):
        overrides = msgspec.json.decode(value or b"{}", type=dict[str, str])
        image.broker_overrides[Scope(key[len(_BROKER_KEY) :].decode())] = overrides
    elif key == _PRODUCER_IDS_KEY and value is not None:
        if not value.isdigit() or len(value) > 19 or int(value) > producer_id_max:
            raise ValueError("it does not hold a producer id")
        image.producer_ids_end = int(value)


def topic_key(name: str, topic_id: uuid.UUID) -> bytes:
    return _TOPIC_KEY + name.encode() + b"\x00" + topic_id.bytes


def _split_topic_key(key: bytes) -> tuple[str, uuid.UUID]:
    # The name ends with a zero byte, the id has 16 bytes.
    if len(key) <= len(_TOPIC_KEY) + 17 or key[-17] != 0:
        raise ValueError("it does not hold a name and an id")
    name = key[len(_TOPIC_KEY) : -17].decode()
    fault = topic_name_fault(name)
    if fault is not None:
        raise ValueError(fault)
    return name, uuid.UUID(bytes=key[-16:])


def topic_entry(name: str, topic_id: uuid.UUID, partitions: int, overrides: Mapping[str, str]) -> tuple[bytes, bytes]:
    return topic_key(name, topic_id), msgspec.json.encode(TopicEntry(partitions, dict(overrides)))


def broker_entry(scope: Scope, overrides: Mapping[str, str]) -> tuple[bytes, bytes]:
    return _BROKER_KEY + scope.value.encode(), msgspec.json.encode(dict(overrides))


def producer_ids_entry(end: int) -> tuple[bytes, bytes]:
    return _PRODUCER_IDS_KEY, str(end).encode()
