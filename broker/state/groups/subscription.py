"""Reads the topics from the protocol metadata of a consumer (`ConsumerProtocolSubscription`).

All versions start with the version number and the list of topics. The remaining fields are ignored.
"""

import struct

CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics, or None if the bytes are not a subscription."""
    try:
        _, count = struct.unpack_from(">hi", metadata, 0)
        position = 6
        topics: set[str] = set()
        for _ in range(count):
            (length,) = struct.unpack_from(">h", metadata, position)
            position += 2
            if length < 0 or position + length > len(metadata):
                return None
            topics.add(metadata[position : position + length].decode("utf-8"))
            position += length
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(topics) if count >= 0 else None
