"""Reads the topics out of a consumer's protocol metadata (`ConsumerProtocolSubscription`, its version 0 prefix).

Every version starts with the version itself and the list of topics; later ones only append. Nothing else is read.
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
