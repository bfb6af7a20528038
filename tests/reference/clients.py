"""The API versions that common clients send to Kafka 4.3.1, captured on the wire."""

from collections.abc import Mapping

CLIENTS = ("librdkafka 2.16", "aiokafka 0.14", "kafka-python 3.0", "Java 4.3.1", "franz-go")

NEWEST_SENT: Mapping[int, tuple[int | None, ...]] = {
    0: (10, 7, 9, 13, 13),
    1: (16, 11, 12, 18, 18),
    2: (7, 3, 11, 11, 11),
    3: (13, 5, 13, 13, 13),
    8: (9, 3, 8, 10, 10),
    9: (9, 3, 8, 10, 10),
    10: (2, 1, 6, 6, 6),
    11: (5, 5, 7, 9, 9),
    12: (3, 1, 4, 4, 4),
    13: (1, 1, 5, 5, 5),
    14: (3, 3, 5, 5, 5),
    15: (5, 3, 6, 6, None),
    16: (5, 1, 5, 5, None),
    18: (3, 0, 4, 4, 4),
    19: (4, 3, 7, 7, 7),
    20: (4, 3, 6, 6, 6),
    21: (2, 2, 2, 2, None),
    22: (4, 0, 4, 5, 5),
    23: (None, None, None, 4, 4),
    32: (1, 2, 4, 4, None),
    33: (None, 1, None, None, None),
    34: (None, None, None, 2, None),
    35: (None, None, None, 5, None),
    37: (2, 1, 3, 3, None),
    42: (2, 2, 2, 2, 2),
    43: (2, None, 2, 2, None),
    44: (1, None, 1, 1, None),
    45: (None, None, 1, 1, None),
    46: (None, None, None, 0, None),
    47: (None, None, None, 0, None),
    60: (None, None, 2, 2, None),
    61: (None, None, None, 0, None),
    74: (None, None, None, 1, None),
    75: (None, None, None, 0, None),
}
"""Newest version by API key, in the order of CLIENTS. None if the client does not use the API."""
