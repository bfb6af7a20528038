"""Intended differences from Apache Kafka: the step, the different response, and the reason.

docs/deviations.md documents them for users. A deviation replaces parts of the golden response, and the comparison with
the result is equally strict.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Deviation:
    reason: str
    # Paths into the response, for example "responses.0.error_code", and the value at each path.
    instead: Mapping[str, Any]


_NO_INTERNAL_ERROR = "Kafka answers what it did not foresee with UNKNOWN_SERVER_ERROR; here the error has a name"
_GAPS = "offset deltas that skip or repeat would give two records one offset, or hide some: refused"
_KEPT_AS_SENT = "batches are never encoded again, whatever compression.type says"
_LENIENT = "a limit below zero counts as zero, an unknown isolation level as read_uncommitted"
_NOT_WALKED = "long compressed batches are not decompressed: only their count is compared with their offsets"
_ONE_BATCH = "two batches for one partition in one request are both rejected: Kafka drops one and acknowledges it"
_ONE_BAD_TOPIC = "one topic that is named neither by name nor by id fails alone, not the whole answer"

_PARTITION = "responses.0.partition_responses.0"
_REFUSED = {f"{_PARTITION}.error_code": "INVALID_RECORD", f"{_PARTITION}.error_message": "said"}
_TAKEN = {f"{_PARTITION}.error_code": "NONE", f"{_PARTITION}.base_offset": 0, f"{_PARTITION}.error_message": None}
_BOTH_REFUSED = {
    f"{_PARTITION}.error_code": "INVALID_REQUEST",
    f"{_PARTITION}.base_offset": -1,
    f"{_PARTITION}.log_start_offset": -1,
}
_LONG_AND_TAKEN = (
    *(f"{codec}: {fault}" for codec in ("gzip", "lz4") for fault in ("claims one more", "claims one less", "a gap")),
    *(f"{codec}: claims ten times as many" for codec in ("gzip", "lz4")),
)
_UNREADABLE = tuple(f"{codec} that is no {codec}" for codec in ("gzip", "snappy", "lz4", "zstd"))
_BROKER = {"node_id": 1, "host": "<host>", "port": "<port>", "rack": None}
_WHOLE_ANSWER = {
    "brokers": [_BROKER],
    "cluster_id": "<cluster_id>",
    "controller_id": 1,
    "topics.0.error_code": "UNKNOWN_TOPIC_ID",
    "topics.0.name": None,
}

_AREA = "documented_deviations"
_ONE_ENTRY = (
    "an item that occurs twice in a request is answered once, because a short request could cause a large response"
)
_OTHER_CONFIGS = "groups and client metrics have no configs, unknown broker configs are errors, threads are not limited"
_OFFSETS = {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1, "metadata": "note"}


def _config_changes(label: str, code: str) -> dict[tuple[str, str, str], Deviation]:
    """The result of a config change that Kafka accepts or rejects, for both APIs."""
    result = {"responses.0.error_code": code, "responses.0.error_message": None if code == "NONE" else "said"}
    apis = ("incremental_alter_configs v1", "alter_configs v2")
    return {(_AREA, "configs", f"{api}: {label}"): Deviation(_OTHER_CONFIGS, result) for api in apis}


# Keyed by area, scenario and step.
DEVIATIONS: Mapping[tuple[str, str, str], Deviation] = {
    ("configs", "wrong_changes", "incremental_alter_configs v1: no such operation"): Deviation(
        _NO_INTERNAL_ERROR,
        {"responses.0.error_code": "INVALID_REQUEST", "responses.0.error_message": "said"},
    ),
    **_config_changes("a group", "INVALID_CONFIG"),
    **_config_changes("client metrics", "INVALID_REQUEST"),
    **_config_changes("an unknown config of a broker", "INVALID_REQUEST"),
    **_config_changes("four times as many threads", "NONE"),
    (_AREA, "configs", "describe_configs v4: an item with spaces"): Deviation(
        "spaces around the items of a list are removed", {"value": "delete"}
    ),
    (_AREA, "duplicates", "offset_fetch v9: a group twice"): Deviation(
        _ONE_ENTRY,
        {
            "groups": [
                {
                    "group_id": "named-twice",
                    "topics": [{"name": "named-twice", "partitions": [{**_OFFSETS, "error_code": "NONE"}]}],
                    "error_code": "NONE",
                }
            ]
        },
    ),
    (_AREA, "duplicates", "describe_groups v5: a group twice"): Deviation(
        _ONE_ENTRY,
        {
            "groups": [
                {
                    "error_code": "NONE",
                    "group_id": "named-twice",
                    "group_state": "Empty",
                    "protocol_type": "",
                    "protocol_data": "",
                    "members": [],
                    "authorized_operations": -(2**31),
                }
            ]
        },
    ),
    (_AREA, "duplicates", "describe_producers v0: twice"): Deviation(
        _ONE_ENTRY,
        {
            "topics.0.partitions": [
                {"partition_index": 0, "error_code": "NONE", "error_message": None, "active_producers": []}
            ]
        },
    ),
    (_AREA, "lookups", "list_offsets v7: an unknown isolation level"): Deviation(
        _LENIENT,
        {
            "topics.0.partitions.0.error_code": "NONE",
            "topics.0.partitions.0.leader_epoch": 0,
            "topics.0.partitions.0.offset": 2,
        },
    ),
    (_AREA, "lookups", "list_offsets v7: the maximum timestamp of a deleted record"): Deviation(
        "the maximum timestamp of a deleted record belongs to the log start offset", {"topics.0.partitions.0.offset": 1}
    ),
    (_AREA, "protocols_of_a_member", "join_group v3: 1,001 protocols"): Deviation(
        "a member has at most 1,000 protocols", {"error_code": "INVALID_REQUEST"}
    ),
    (_AREA, "topics", "create_topics v4: two names that collide"): Deviation(
        "names that collide are rejected in one request as in two",
        {
            "topics": [
                {"name": "collides_here", "error_code": "INVALID_TOPIC_EXCEPTION", "error_message": "said"},
                {"name": "collides.here", "error_code": "NONE", "error_message": None},
            ]
        },
    ),
    (_AREA, "topics", "create_partitions v3: more than 10,000 new partitions"): Deviation(
        _NO_INTERNAL_ERROR, {"results.0.error_code": "POLICY_VIOLATION"}
    ),
    (_AREA, "topics", "describe_topic_partitions v0: an empty name"): Deviation(
        _NO_INTERNAL_ERROR,
        {"topics.0.error_code": "INVALID_TOPIC_EXCEPTION", "topics.0.topic_authorized_operations": 3576},
    ),
    ("fetching", "limits_on_bytes", "fetch v11: negative limits"): Deviation(
        _LENIENT, {"batches": [[0, "NONE", [0]], [1, "NONE", []]]}
    ),
    ("fetching", "odd_fetches", "fetch v11: no such isolation level"): Deviation(
        _LENIENT, {"batches": [[0, "NONE", [0]]]}
    ),
    ("metadata", "metadata_by_id", "metadata v12: neither"): Deviation(_ONE_BAD_TOPIC, _WHOLE_ANSWER),
    ("metadata", "metadata_by_id", "metadata v13: neither"): Deviation(
        _ONE_BAD_TOPIC, {**_WHOLE_ANSWER, "error_code": "NONE"}
    ),
    **{
        ("rejected_batches", "broken_batches", f"produce v9: {label}"): Deviation(_NO_INTERNAL_ERROR, _REFUSED)
        for label in ("unknown codec 5", "unknown codec 7", *_UNREADABLE)
    },
    **{
        ("rejected_batches", "broken_batches", f"produce v9: {label}"): Deviation(
            _GAPS, {**_REFUSED, f"{_PARTITION}.base_offset": -1}
        )
        for label in ("record offset deltas with a gap", "record offset deltas out of order")
    },
    **{
        ("rejected_batches", "broken_batches", f"list_offsets v7: the end after: {label}"): Deviation(
            _GAPS, {"offset": 0}
        )
        for label in ("record offset deltas with a gap", "record offset deltas out of order")
    },
    **{
        ("rejected_batches", "long_batches", f"produce v9: {label}"): Deviation(_NOT_WALKED, _TAKEN)
        for label in _LONG_AND_TAKEN
    },
    ("producing", "several_batches_and_partitions", "produce v9: the same partition twice"): Deviation(
        _ONE_BATCH, {f"{_PARTITION}.error_code": "INVALID_REQUEST"}
    ),
    **{
        ("producing", "what_is_named_twice", f"produce v{version}: {label}"): Deviation(_ONE_BATCH, _BOTH_REFUSED)
        for version in (7, 9, 13)
        for label in ("a partition twice", "a partition in a topic named twice")
    },
    **{
        ("producing", "what_is_named_twice", f"produce v{version}: {label}"): Deviation(_ONE_BATCH, {place: offset})
        for version in (7, 9, 13)
        for label, place, offset in (
            ("an unknown partition twice", "responses.0.partition_responses.1.base_offset", 1),
            ("an unknown topic twice", "responses.1.partition_responses.0.base_offset", 2),
        )
    },
    **{
        ("producing", "what_is_named_twice", f"fetch v11: what v{version} appended"): Deviation(
            _ONE_BATCH, {"records": ["1", "3", "4"]}
        )
        for version in (7, 9, 13)
    },
    ("producing", "compression_of_the_topics_own", "fetch v11: read from the gzip topic"): Deviation(
        _KEPT_AS_SENT, {"0.0.codec": "none", "0.1.codec": "lz4"}
    ),
    ("producing", "compression_of_the_topics_own", "fetch v11: read from the topic without compression"): Deviation(
        _KEPT_AS_SENT, {"0.0.codec": "gzip"}
    ),
}


def apply_deviations(area: str, scenario: str, golden: list[Any]) -> list[Any]:
    changed = copy.deepcopy(golden)
    for step in changed:
        deviation = DEVIATIONS.get((area, scenario, step["do"]))
        if deviation is not None:
            for path, value in deviation.instead.items():
                _replace(step, ["answer", *path.split(".")], value)
    return changed


def _replace(where: Any, path: list[str], value: Any) -> None:
    for part in path[:-1]:
        where = where[int(part)] if isinstance(where, list) else where[part]
    last = path[-1]
    if isinstance(where, list):
        where[int(last)] = value
    else:
        where[last] = value
