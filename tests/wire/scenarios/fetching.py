"""Fetch: positions, limits, waiting, sessions."""

import time
from typing import Any

from tests.wire.entities import Plain
from tests.wire.filled_topics import bounds_of, filled
from tests.wire.record_batches import Batch, NewRecord
from tests.wire.transcript import Wire, fetch_body

ENDLESS_MS = 600_000
"""Longer than a connection waits for a response."""
NOBODY = "00000000-0000-4000-8000-00000000dead"


def _without_session(answer: Plain) -> Plain:
    answer.pop("session_id", None)
    return answer


def every_version(wire: Wire) -> None:
    topic = filled(wire, "versions", 2, 2)
    topic_id = wire.topic_id(topic)
    for version in range(4, 19):

        def ask(label: str, body: Plain, at: int = version) -> None:
            wire.ask("fetch", at, body, label=label, keep=_without_session)

        ask("from the start", fetch_body(topic, 0, topic_id=topic_id))
        ask("inside the last batch", fetch_body(topic, 3, topic_id=topic_id))
        ask("at the end", fetch_body(topic, 4, topic_id=topic_id))
        ask("past the end", fetch_body(topic, 5, topic_id=topic_id))
        ask("before the start", fetch_body(topic, -5, topic_id=topic_id))
        ask("unknown partition", fetch_body(topic, 0, partition=7, topic_id=topic_id))
        ask("unknown topic", fetch_body(wire.name("absent"), 0, topic_id=NOBODY))
        ask("committed only", fetch_body(topic, 0, topic_id=topic_id, isolation_level=1))


def every_offset_of_a_log(wire: Wire) -> None:
    topic = filled(wire, "offsets")
    for offset in range(-1, 14):
        wire.ask("fetch", 11, fetch_body(topic, offset), label=f"offset {offset}", keep=bounds_of)


def limits_on_bytes(wire: Wire) -> None:
    topic = wire.topic("limits", 2)
    for partition in (0, 1):
        for _ in range(3):
            wire.produce(topic, Batch([NewRecord(b"x" * 1000)]), partition=partition)

    def ask(label: str, version: int = 11, **limits: Any) -> None:
        part = {"fetch_offset": 0, "partition_max_bytes": limits.pop("partition_max_bytes", 1 << 20)}
        parts = [{**part, "partition": 0}, {**part, "partition": 1}]
        body = {"max_wait": 0, "min_bytes": 0, "max_bytes": 1 << 20, "topics": [{"topic": topic, "partitions": parts}]}
        wire.ask("fetch", version, {**body, **limits}, label=label, keep=_counts)

    ask("room for all")
    ask("the first batch comes whole, however small the limit", partition_max_bytes=1)
    ask("one byte in all", max_bytes=1)
    ask("nothing in all", max_bytes=0)
    ask("nothing per partition", partition_max_bytes=0)
    ask("one batch and a half per partition", partition_max_bytes=1600)
    ask("two batches per partition", partition_max_bytes=2200)
    ask("two batches in all", max_bytes=2200)
    ask("negative limits", max_bytes=-1, partition_max_bytes=-1)


def _counts(answer: Plain) -> Any:
    parts = sorted(
        (
            part["partition_index"],
            part["error_code"],
            # Ignore truncated batches: clients cannot use them, and a broker may omit them.
            [batch["base_offset"] for batch in part["records"] or [] if "base_offset" in batch],
        )
        for topic in answer["responses"]
        for part in topic["partitions"]
    )
    return {"batches": [list(part) for part in parts]}


def a_reader_waits_for_data(wire: Wire) -> None:
    topic = wire.topic("waiting")
    reader = wire.connect()
    reader.send("fetch", 11, fetch_body(topic, 0, max_wait=ENDLESS_MS, min_bytes=1))
    wire.produce(topic, Batch())
    answer = reader.receive()
    wire.note("fetch", 11, {}, _without_session(answer), "woken by the first record")
    reader.send("fetch", 11, fetch_body(topic, 1, max_wait=300, min_bytes=1))
    started = time.monotonic()
    wire.note("fetch", 11, {}, _without_session(reader.receive()), "nothing came")
    assert time.monotonic() - started > 0.2, "the fetch did not wait for its time"
    reader.send("fetch", 11, fetch_body(topic, 0, max_wait=300, min_bytes=100_000))
    wire.note("fetch", 11, {}, _without_session(reader.receive()), "less than it asked for, after its time")
    body = fetch_body(topic, 9, max_wait=ENDLESS_MS, min_bytes=1)
    wire.ask("fetch", 11, body, label="an error does not wait", keep=bounds_of)


def a_full_answer_does_not_wait(wire: Wire) -> None:
    topic = wire.topic("full")
    for _ in range(3):
        wire.produce(topic, Batch([NewRecord(b"x" * 6000)]))

    def ask(label: str, **limits: Any) -> None:
        part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": limits.pop("partition_max_bytes", 1 << 20)}
        body = {"max_wait": ENDLESS_MS, "max_bytes": 1 << 20, "topics": [{"topic": topic, "partitions": [part]}]}
        wire.ask("fetch", 11, {**body, **limits}, label=label, keep=_whole)

    ask("more asked for than the answer may hold", min_bytes=1 << 20, max_bytes=10_000)
    ask("as much asked for as the partition may give", min_bytes=10_000, partition_max_bytes=10_000)


def _whole(answer: Plain) -> Any:
    (part,) = answer["responses"][0]["partitions"]
    offsets = [batch["base_offset"] for batch in part["records"] if "base_offset" in batch]
    return {"error_code": part["error_code"], "whole batches": offsets}


def topic_ids(wire: Wire) -> None:
    topic = filled(wire, "identified", 1, 1)
    topic_id = wire.topic_id(topic)
    for version in (13, 15, 17, 18):
        body = fetch_body(topic, 0, topic_id=NOBODY)
        body["topics"] += fetch_body(topic, 0, topic_id=topic_id)["topics"]
        wire.ask("fetch", version, body, label="one unknown id among good", keep=_without_session)
        wire.ask("fetch", version, fetch_body(topic, 0), label="no id", keep=_without_session)
    made = wire.topic("remade")
    old = wire.topic_id(made)
    wire.learn(old, "<old id>")
    wire.main.ask("delete_topics", 6, {"topics": [{"name": made}], "timeout": 10_000})
    wire.await_topic(made, present=False)
    wire.main.ask("create_topics", 7, {"topics": [{"name": made, "num_partitions": 1, "replication_factor": 1}]})
    wire.await_topic(made)
    wire.ask(
        "fetch", 17, fetch_body(made, 0, topic_id=old), label="the id before it was made again", keep=_without_session
    )


def leader_epochs(wire: Wire) -> None:
    topic = filled(wire, "epochs", 1, 2)
    for epoch in (-1, 0, 1, 99):
        body = fetch_body(topic, 0, current_leader_epoch=epoch)
        wire.ask("fetch", 12, body, label=f"current leader epoch {epoch}", keep=_without_session)
    for epoch in (0, 1, 99):
        body = fetch_body(topic, 0, last_fetched_epoch=epoch)
        wire.ask("fetch", 12, body, label=f"last fetched epoch {epoch}", keep=_without_session)
    for offset in (-1, 2, 3):
        body = fetch_body(topic, offset, last_fetched_epoch=0)
        wire.ask("fetch", 12, body, label=f"offset {offset} after epoch 0", keep=_without_session)
    for version in (2, 3, 4):
        for asked in (0, 1, -1, 99):
            part = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": asked}
            body = {"replica_id": -1, "topics": [{"topic": topic, "partitions": [part]}]}
            wire.ask("offset_for_leader_epoch", version, body, label=f"the end of epoch {asked}")
        part = {"partition": 0, "current_leader_epoch": 99, "leader_epoch": 0}
        body = {"replica_id": -1, "topics": [{"topic": topic, "partitions": [part]}]}
        wire.ask("offset_for_leader_epoch", version, body, label="current leader epoch 99")
        part = {"partition": 9, "current_leader_epoch": -1, "leader_epoch": 0}
        body = {"replica_id": -1, "topics": [{"topic": topic, "partitions": [part]}]}
        wire.ask("offset_for_leader_epoch", version, body, label="unknown partition")
        body = {"replica_id": -1, "topics": [{"topic": wire.name("absent"), "partitions": [part]}]}
        wire.ask("offset_for_leader_epoch", version, body, label="unknown topic")


def errors_behind_what_the_limits_take(wire: Wire) -> None:
    topic = wire.topic("full", 3)
    wire.produce(topic, Batch([NewRecord(b"x" * 100)]))
    for offset in (-1, 0, 1, 7):
        body = fetch_body(topic, 0, max_bytes=1)
        body["topics"][0]["partitions"] += fetch_body(topic, offset, partition=1)["topics"][0]["partitions"]
        wire.ask("fetch", 11, body, label=f"an empty partition from {offset} on", keep=_without_session)


def sessions_that_do_not_exist(wire: Wire) -> None:
    topic = filled(wire, "sessions", 1, 1)
    for session, epoch in ((12345, 1), (12345, 5), (0, 3)):
        body = fetch_body(topic, 0, session_id=session, session_epoch=epoch)
        wire.ask("fetch", 11, body, label=f"session {session} epoch {epoch}")
    body = fetch_body(topic, 0, session_id=0, session_epoch=-1)
    wire.ask("fetch", 11, body, label="no session wanted")
    body = fetch_body(topic, 0, session_id=12345, session_epoch=-1)
    wire.ask("fetch", 11, body, label="closing a session that is not there")


def a_session_sees_what_changed(wire: Wire) -> None:
    """A broker may reject sessions with session id 0. Then the client sends full fetch requests."""
    topic = filled(wire, "session", 1, 1)
    quiet = wire.topic("session-quiet")
    body = fetch_body(topic, 0, session_id=0, session_epoch=0)
    body["topics"] += fetch_body(quiet, 0)["topics"]
    first = wire.main.ask("fetch", 11, body)
    wire.note("fetch", 11, {}, _counts_by_topic(first), "a full fetch")
    session = first["session_id"]
    if session:
        body = fetch_body(topic, 1, session_id=session, session_epoch=1)
    else:
        body = fetch_body(topic, 1, session_id=0, session_epoch=0)
        body["topics"] += fetch_body(quiet, 0)["topics"]
    wire.produce(quiet, Batch([NewRecord(b"news")]))
    second = wire.main.ask("fetch", 11, body)
    seen = {topic: batches for topic, batches in _counts_by_topic(second).items() if batches}
    wire.note("fetch", 11, {}, seen, "what is new")


def _counts_by_topic(answer: Plain) -> Plain:
    return {
        topic["topic"].split(".")[0]: [record["value"] for part in topic["partitions"] for record in _records(part)]
        for topic in answer["responses"]
    }


def _records(part: Plain) -> list[Plain]:
    return [record for batch in part["records"] or [] for record in batch["records"]]


def odd_fetches(wire: Wire) -> None:
    topic = filled(wire, "odd", 1, 1)
    wire.ask("fetch", 11, {"max_wait": 0, "topics": []}, label="no topics", keep=_without_session)
    body = fetch_body(topic, 0)
    body["topics"][0]["partitions"] *= 2
    wire.ask("fetch", 11, body, label="the same partition twice", keep=_counts)
    wire.ask("fetch", 11, fetch_body("bad name", 0), label="invalid name", keep=_without_session)
    wire.ask("fetch", 11, fetch_body(topic, 0, isolation_level=7), label="no such isolation level", keep=_counts)
    wire.ask("fetch", 11, fetch_body(topic, 0, partition=-1), label="partition -1", keep=_without_session)


def what_is_named_twice(wire: Wire) -> None:
    """The response contains each partition once, with its last request. Adjacent entries of one topic are merged."""
    names = {part: wire.topic(f"twice-{part}", 2) for part in ("a", "b")}
    ids = {part: wire.topic_id(name) for part, name in names.items()}
    names["x"], ids["x"] = wire.name("absent"), NOBODY
    for name in (names["a"], names["b"]):
        for partition in (0, 1):
            for _ in range(2):
                wire.produce(name, Batch([NewRecord(b"x" * 100)]), partition=partition)

    def asked(part: str, *positions: tuple[int, int]) -> Plain:
        parts = [{"partition": index, "fetch_offset": at, "partition_max_bytes": 1 << 20} for index, at in positions]
        return {"topic": names[part], "topic_id": ids[part], "partitions": parts}

    for version in (11, 12, 16):
        for label, topics in {
            "a topic, another, the first again": (asked("a", (0, 0)), asked("b", (0, 0)), asked("a", (1, 0))),
            "a topic twice in a row": (asked("a", (0, 0)), asked("a", (1, 0)), asked("b", (0, 0))),
            "a partition twice": (asked("a", (0, 0), (1, 0), (0, 1)),),
            "a partition in a topic named twice": (asked("a", (0, 1)), asked("b", (0, 0)), asked("a", (0, 0))),
            "an unknown partition twice": (asked("a", (9, 0), (0, 0)), asked("a", (9, 0))),
            "an unknown topic twice": (asked("x", (0, 0)), asked("x", (0, 0), (1, 0))),
            "no partition": (asked("a"), asked("b", (0, 0))),
            "nothing but no partition": (asked("a"),),
        }.items():
            body = {"max_wait": 0, "min_bytes": 0, "max_bytes": 1 << 20, "topics": list(topics)}
            wire.ask("fetch", version, body, label=label, keep=_offsets_by_topic)
    again = [asked("a", (0, 1), (1, 0)), asked("b", (0, 0)), asked("a", (0, 0))]
    body = {"max_wait": 0, "min_bytes": 0, "max_bytes": 1, "topics": again}
    wire.ask("fetch", 12, body, label="its first place is what the limits know", keep=_offsets_by_topic)


def _offsets_by_topic(answer: Plain) -> Any:
    def offsets(part: Plain) -> list[int]:
        return [batch["base_offset"] for batch in part["records"] or []]

    return [
        {
            "topic": topic.get("topic") or topic.get("topic_id"),
            "partitions": [
                {"index": part["partition_index"], "error_code": part["error_code"], "batches": offsets(part)}
                for part in topic["partitions"]
            ],
        }
        for topic in answer["responses"]
    ]
