"""Runs scenarios of raw requests against a broker and records normalised responses that two brokers must agree on.

A scenario is a function that takes a `Wire`. Normalisation replaces generated ids with names, blanks addresses and
timestamps, and sorts lists without a defined order. Golden files keep error messages for the reader. The comparison
checks only that a message is present.
"""

import json
import re
import secrets
import time
from collections.abc import Callable, Iterable
from typing import Any

from tests.wire.entities import Plain
from tests.wire.raw_client import ConnectionClosed, RawConnection
from tests.wire.record_batches import Batch

SETTLE_SECONDS_MAX = 15.0
NOW_WINDOW_MS = 3_600_000
# Golden files show only the size of longer record batches. The label of the step describes their content.
BYTES_SHOWN_MAX = 48
DRAWN_MEMBER_ID = re.compile(r".*-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
NOT_YET = {"COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"}
DROPPED = {"throttle_time"}
BLANKED = {"cluster_id", "host", "port", "client_host", "log_dir", "total_bytes", "usable_bytes"}
MESSAGES = {"error_message", "batch_index_error_message"}
# Clients ignore these fields after a partition error. In Kafka, their values depend on the failing step.
UNREAD_ON_ERROR = {"aborted_transactions", "log_start_offset"}

Scenario = Callable[["Wire"], None]


class Wire:
    """The interface of a scenario to the broker: connections, unique names, and the recorded steps."""

    def __init__(self, address: str, scenario: str) -> None:
        self.address = address
        self.scenario = scenario
        self.steps: list[Plain] = []
        # Names are unique per run, so that scenarios can run again on the same broker.
        self._token = secrets.token_hex(4)
        self._connections: list[RawConnection] = []
        self._names: dict[str, str] = {}
        self._members = 0
        self._producers: dict[int, str] = {}
        self.main = self.connect()

    def connect(self) -> RawConnection:
        connection = RawConnection(self.address)
        self._connections.append(connection)
        return connection

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def name(self, part: str) -> str:
        return f"{part}.{self._token}"

    def group(self, part: str) -> str:
        """Return a group name when its coordinator is ready. A new Kafka needs seconds to create its offsets topic."""
        group = self.name(part)
        sought = {"key": group, "key_type": 0}
        self.until("find_coordinator", 3, sought, lambda answer: answer["error_code"] not in NOT_YET)
        self.until(
            "offset_fetch",
            7,
            {"group_id": group, "topics": None},
            lambda answer: answer["error_code"] not in NOT_YET,
        )
        return group

    def topic(self, part: str, partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        """Create a topic and wait until it is ready. Records no step."""
        name = self.name(part)
        body = {
            "topics": [
                {
                    "name": name,
                    "num_partitions": partitions,
                    "replication_factor": 1,
                    "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
                }
            ],
            "timeout": 10_000,
        }
        created = self.main.ask("create_topics", 7, body)["topics"][0]
        assert created["error_code"] == "NONE", created
        self.learn(created["topic_id"], f"<id of {self._clean(name)}>")
        self.await_topic(name)
        return name

    def topic_id(self, name: str) -> str:
        answer = self.main.ask("metadata", 12, {"topics": [{"name": name}], "allow_auto_topic_creation": False})
        topic_id: str = answer["topics"][0]["topic_id"]
        self.learn(topic_id, f"<id of {self._clean(name)}>")
        return topic_id

    def await_topic(self, name: str, *, present: bool = True) -> None:
        body = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
        wanted = "NONE" if present else "UNKNOWN_TOPIC_OR_PARTITION"

        def settled(answer: Plain) -> bool:
            topic = answer["topics"][0]
            parts_ready = all(part["error_code"] == "NONE" for part in topic["partitions"])
            return bool(topic["error_code"] == wanted and parts_ready)

        seen = self.until("metadata", 12, body, settled)
        # Kafka lists a partition before it can serve it.
        for part in seen["topics"][0]["partitions"]:
            self.await_partition(name, part["partition_index"])

    def await_partition(self, name: str, partition: int) -> None:
        asked = {"name": name, "partitions": [{"partition_index": partition, "timestamp": -1}]}
        self.until(
            "list_offsets",
            7,
            {"replica_id": -1, "topics": [asked]},
            lambda answer: answer["topics"][0]["partitions"][0]["error_code"] == "NONE",
        )

    def produce(self, topic: str, *batches: Batch, partition: int = 0, version: int = 9, acks: int = -1) -> Plain:
        """Append batches and check for success. Records no step. Returns the partition response."""
        body = produce_body(topic, *batches, partition=partition, acks=acks)
        answer: Plain = self.main.ask("produce", version, body)["responses"][0]["partition_responses"][0]
        assert answer["error_code"] == "NONE", answer
        return answer

    def learn(self, drawn: str | None, name: str) -> None:
        if drawn:
            self._names.setdefault(drawn, name)

    def until(self, api: str, version: int, body: Plain, good: Callable[[Plain], bool]) -> Plain:
        """Repeat a request until `good` accepts the response. Records no step."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while True:
            answer = self.main.ask(api, version, body)
            if good(answer):
                return answer
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.scenario}: {api} v{version} never settled: {answer}")
            time.sleep(0.02)

    def ask(
        self,
        api: str,
        version: int,
        body: Plain,
        *,
        label: str = "",
        on: RawConnection | None = None,
        settled: Callable[[Plain], bool] | None = None,
        keep: Callable[[Plain], Any] | None = None,
    ) -> Plain:
        """Send a request and record the step.

        `settled` repeats the request until it returns true. `keep` selects the part of the response to compare.
        """
        connection = on or self.main
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while True:
            try:
                answer = connection.ask(api, version, body)
            except (ConnectionClosed, TimeoutError) as error:
                fate = "no answer" if isinstance(error, TimeoutError) else "connection closed"
                self.note(api, version, body, fate, label)
                if connection is self.main:
                    self.main = self.connect()
                return {}
            if settled is None or settled(answer) or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        self.note(api, version, body, keep(answer) if keep else answer, label)
        return answer

    def receive(self, connection: RawConnection, api: str, version: int, label: str = "") -> Plain:
        """Receive and record the response to a request that was sent separately."""
        try:
            answer = connection.receive()
        except ConnectionClosed:
            self.note(api, version, {}, "connection closed", label)
            return {}
        self.note(api, version, {}, answer, label)
        return answer

    def note(self, api: str, version: int, body: Any, answer: Any, label: str = "") -> None:
        self.learn_from(answer)
        step: Plain = {"do": f"{api} v{version}" + (f": {label}" if label else "")}
        if body:
            step["ask"] = self.normalise(body)
        step["answer"] = self.normalise(answer)
        self.steps.append(step)

    def normalise(self, value: Any, field: str = "") -> Any:
        if isinstance(value, dict):
            plain = {key: self.normalise(item, key) for key, item in value.items() if key not in DROPPED}
            # Do not store Kafka's documentation text, only that it exists.
            if plain.get("documentation"):
                plain["documentation"] = "<documented>"
            return plain
        if isinstance(value, (list, tuple)):
            items = [self.normalise(item, field) for item in value]
            if field not in {"records", "batches"} and all(isinstance(item, (dict, str, int)) for item in items):
                items.sort(key=_order)
            return items
        if field in BLANKED and value not in (None, "", -1):
            return f"<{field}>"
        if isinstance(value, bytes):
            if len(value) > BYTES_SHOWN_MAX:
                return f"<{len(value)} bytes>"
            value = value.decode("latin-1")
        if isinstance(value, str):
            return self._names.get(value) or self._replace_known(self._clean(value))
        if isinstance(value, bool):
            return value
        if isinstance(value, int):
            if field == "producer_id" and value in self._producers:
                return self._producers[value]
            if abs(value - time.time() * 1000) < NOW_WINDOW_MS:
                return "<now>"
        return value

    def _clean(self, text: str) -> str:
        return text.replace(f".{self._token}", "")

    def _replace_known(self, text: str) -> str:
        for drawn, name in self._names.items():
            if drawn in text:
                text = text.replace(drawn, name)
        return text

    def learn_from(self, value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                self.learn_from(item)
        elif isinstance(value, dict):
            topic_id, name = value.get("topic_id"), value.get("name") or value.get("topic_name")
            if isinstance(topic_id, str) and isinstance(name, str):
                self.learn(topic_id, f"<id of {self._clean(name)}>")
            for key in ("member_id", "leader"):
                member = value.get(key)
                if isinstance(member, str) and DRAWN_MEMBER_ID.match(member) and member not in self._names:
                    self._members += 1
                    self.learn(member, f"<member {self._members}>")
            producer = value.get("producer_id")
            if isinstance(producer, int) and producer >= 0 and producer not in self._producers:
                self._producers[producer] = f"<producer {len(self._producers) + 1}>"
            for item in value.values():
                self.learn_from(item)


def produce_body(topic: str, *batches: Batch | bytes, partition: int = 0, acks: int = -1, topic_id: str = "") -> Plain:
    records = b"".join(batch if isinstance(batch, bytes) else batch.encode() for batch in batches)
    named: Plain = {"name": topic}
    if topic_id:
        named["topic_id"] = topic_id
    return {
        "acks": acks,
        "timeout": 5_000,
        "topic_data": [{**named, "partition_data": [{"index": partition, "records": records}]}],
    }


def fetch_body(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    topic_id: str = "",
    max_wait: int = 0,
    min_bytes: int = 0,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    **more: Any,
) -> Plain:
    named: Plain = {"topic": topic}
    if topic_id:
        named["topic_id"] = topic_id
    part = {
        "partition": partition,
        "fetch_offset": offset,
        "partition_max_bytes": partition_max_bytes,
        "current_leader_epoch": more.pop("current_leader_epoch", -1),
        "last_fetched_epoch": more.pop("last_fetched_epoch", -1),
    }
    return {
        "replica_id": -1,
        "max_wait": max_wait,
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "topics": [{**named, "partitions": [part]}],
        **more,
    }


def _order(item: Any) -> str:
    return json.dumps(_compared(item), sort_keys=True)


def _compared(item: Any) -> Any:
    """Remove the fields in which two brokers may differ, so that both sort in the same order."""
    if isinstance(item, dict):
        return {key: _compared(value) for key, value in item.items() if key not in MESSAGES | UNREAD_ON_ERROR}
    return [_compared(value) for value in item] if isinstance(item, list) else item


def run_scenario(address: str, name: str, scenario: Scenario) -> list[Plain]:
    wire = Wire(address, name)
    try:
        scenario(wire)
    finally:
        wire.close()
    return wire.steps


def differences(expected: Any, got: Any, path: str = "") -> Iterable[str]:
    """Yield one line for each difference between two normalised records."""
    if isinstance(expected, dict) and isinstance(got, dict):
        failed = expected.get("error_code", "NONE") not in ("NONE", 0)
        for key in sorted(expected.keys() | got.keys()):
            if key not in got:
                yield f"{path}.{key}: missing, expected {expected[key]!r}"
            elif key not in expected:
                yield f"{path}.{key}: unexpected {got[key]!r}"
            elif key in MESSAGES:
                # Kafka returns no message for many errors. An additional message is allowed, a missing message is not.
                if (expected[key] and not got[key]) or (got[key] and not expected[key] and not failed):
                    yield f"{path}.{key}: expected {expected[key]!r}, got {got[key]!r}"
            elif not (failed and key in UNREAD_ON_ERROR):
                yield from differences(expected[key], got[key], f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for i, (left, right) in enumerate(zip(expected, got, strict=True)):
            yield from differences(left, right, f"{path}[{i}]")
    elif expected != got:
        yield f"{path}: expected {expected!r}, got {got!r}"
