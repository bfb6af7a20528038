"""ApiVersions and Metadata at every version: the first requests of every client."""

import struct

from tests.wire.entities import API_KEYS, Plain
from tests.wire.raw_client import request_header
from tests.wire.transcript import Wire

NOBODY = "00000000-0000-4000-8000-00000000dead"


def _shape_only(answer: Plain) -> Plain:
    """Keep only a few API keys. Another test checks the advertised APIs; here the response must be well-formed."""
    answer["api_keys"] = sorted(key["api_key"] for key in answer["api_keys"] if key["api_key"] in (0, 1, 3, 18))
    for name in ("supported_features", "finalized_features", "finalized_features_epoch", "zk_migration_ready"):
        answer.pop(name, None)
    return answer


def api_versions_at_every_version(wire: Wire) -> None:
    for version in range(5):
        body = {"client_software_name": "wire-suite", "client_software_version": "1.0"}
        wire.ask("api_versions", version, body, keep=_shape_only)
    for name, software in (("", "1.0"), ("a b", "1.0"), ("-a", "1.0"), ("good", ""), ("good", "1 0"), ("good", "1-")):
        body = {"client_software_name": name, "client_software_version": software}
        wire.ask("api_versions", 3, body, keep=_shape_only, label=f"called {name!r} {software!r}")


def api_versions_newer_than_known(wire: Wire) -> None:
    for version in (5, 6, 99, 32767, -1):
        connection = wire.connect()
        header = request_header(API_KEYS["api_versions"], version, 7, flexible=True)
        connection.send_frame(header + b"\x02x\x02x\x00")
        frame = connection.receive_frame()
        correlation, error, count = struct.unpack_from(">ihi", frame)
        keys = [struct.unpack_from(">hhh", frame, 10 + 6 * i) for i in range(count)]
        answer = {
            "correlation_id": correlation,
            "error_code": error,
            "bytes after version 0's body": len(frame) - 10 - 6 * count,
            "names its own versions": any(key == API_KEYS["api_versions"] and low == 0 for key, low, _ in keys),
        }
        wire.note("api_versions", version, {}, answer, "answered in the form of version 0")
        body = {"client_software_name": "wire-suite", "client_software_version": "1.0"}
        wire.ask("api_versions", 0, body, on=connection, keep=_shape_only, label="and the connection lives on")


def metadata_at_every_version(wire: Wire) -> None:
    names = [wire.topic("one"), wire.topic("three", 3)]
    for version in range(14):
        body = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False}
        wire.ask("metadata", version, body)
    for version in range(14):
        absent = {"topics": [{"name": wire.name("absent")}], "allow_auto_topic_creation": False}
        if version >= 4:
            wire.ask("metadata", version, absent, label="unknown topic")
        invalid = {"topics": [{"name": "bad name"}], "allow_auto_topic_creation": True}
        wire.ask("metadata", version, invalid, label="invalid name")


def metadata_of_all_topics(wire: Wire) -> None:
    own = {wire.topic("mine"), wire.topic("yours")}

    def keep(answer: Plain) -> Plain:
        return {**answer, "topics": [topic for topic in answer["topics"] if topic["name"] in own]}

    # At version 0, an empty list means all topics. From version 1 on, it means none, and null means all.
    wire.ask("metadata", 0, {"topics": []}, keep=keep)
    for version in range(1, 14):
        wire.ask("metadata", version, {"topics": None}, keep=keep, label="null")
        wire.ask("metadata", version, {"topics": []}, keep=keep, label="empty")


def metadata_of_bad_names(wire: Wire) -> None:
    for name in ("", ".", "..", "a b", "x" * 250, "ünïcode", "a/b"):
        body = {"topics": [{"name": name}], "allow_auto_topic_creation": True}
        wire.ask("metadata", 12, body, label=repr(name[:20]))
        body = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
        wire.ask("metadata", 12, body, label=f"{name[:20]!r}, auto-create off")
    good = wire.topic("good")
    body = {"topics": [{"name": "a b"}, {"name": good}, {"name": wire.name("absent")}, {"name": good}]}
    wire.ask("metadata", 12, {**body, "allow_auto_topic_creation": False}, label="bad among good, one twice")


def metadata_by_id(wire: Wire) -> None:
    name = wire.topic("identified", 2)
    topic_id = wire.topic_id(name)
    for version in (12, 13):
        wire.ask("metadata", version, {"topics": [{"topic_id": topic_id, "name": None}]})
        wire.ask("metadata", version, {"topics": [{"topic_id": NOBODY, "name": None}]}, label="unknown id")
        wire.ask("metadata", version, {"topics": [{"topic_id": topic_id, "name": name}]}, label="name and id")
        wire.ask("metadata", version, {"topics": [{"name": None}]}, label="neither")
    wire.ask("metadata", 10, {"topics": [{"topic_id": topic_id, "name": None}]}, label="too early for ids")
    wire.ask("metadata", 11, {"topics": [{"topic_id": topic_id, "name": name}]}, label="too early for ids")


def metadata_with_operations(wire: Wire) -> None:
    name = wire.topic("operated")
    for version in (8, 9, 10):
        body = {
            "topics": [{"name": name}],
            "include_cluster_authorized_operations": True,
            "include_topic_authorized_operations": True,
        }
        wire.ask("metadata", version, body)
    wire.ask("metadata", 12, {"topics": [{"name": name}], "include_topic_authorized_operations": True})


def metadata_creates_topics_when_asked(wire: Wire) -> None:
    for version in (0, 1, 3, 4, 5, 9, 12, 13):
        name = wire.name(f"auto-v{version}")
        body = {"topics": [{"name": name}], "allow_auto_topic_creation": True}
        wire.ask("metadata", version, body, settled=lambda answer: answer["topics"][0]["error_code"] == "NONE")
    forbidden = {"topics": [{"name": wire.name("not-made")}], "allow_auto_topic_creation": False}
    wire.ask("metadata", 12, forbidden)
    wire.ask("metadata", 12, forbidden, label="and not made afterwards")
    internal = {"topics": [{"name": "__transaction_state"}], "allow_auto_topic_creation": False}
    wire.ask("metadata", 12, internal, keep=lambda answer: {"internal": answer["topics"][0]["is_internal"]})


def ids_and_names_at_once(wire: Wire) -> None:
    topic = wire.topic("both-ways")
    topic_id = wire.topic_id(topic)
    by_id: Plain = {"topic_id": topic_id, "name": None}
    asked: dict[str, list[Plain]] = {
        "an id and a name in one": [{"topic_id": topic_id, "name": topic}],
        "an id and another name in one": [{"topic_id": topic_id, "name": wire.name("absent")}],
        "an id that nobody has, and a name": [{"topic_id": NOBODY, "name": topic}],
        "an id twice": [by_id, by_id],
        "an id, and an unknown name": [by_id, {"name": wire.name("absent")}],
        "an id, and its name": [{"name": topic}, by_id],
        "an id, and nothing": [by_id, {"name": None}],
        "a name twice": [{"name": topic}, {"name": topic}],
        "names good and bad": [{"name": topic}, {"name": wire.name("absent")}, {"name": "bad name!"}],
    }
    for version in (12, 13):
        for label, topics in asked.items():
            body = {"topics": topics, "allow_auto_topic_creation": False}
            wire.ask("metadata", version, body, label=label)
