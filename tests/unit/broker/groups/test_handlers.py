"""Every group API at every version: request bytes in, response bytes out."""

import datetime
import io
import uuid
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from headgate.broker.engine import Engine
from headgate.broker.handlers import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from headgate.broker.node.broker import Broker
from headgate.broker.protocol.entities import read_request, response_writer
from headgate.broker.protocol.outcomes import Disconnect
from headgate.broker.protocol.request_guard import REQUEST_ITEMS_MAX
from headgate.broker.protocol.request_shapes import RequestContext
from headgate.broker.runtime.deferred import Deferred
from headgate.wire.entities import entity_builder
from tests.unit.broker.groups.driver import Cluster, subscription
from tests.wire.raw_client import request_header

TOPIC_ID = uuid.UUID(int=7)
GROUP = "group"
MANY = [""] * (REQUEST_ITEMS_MAX + 1)


class TopicsOfOne:
    """Holds one topic, `topic`, with two partitions."""

    topic = SimpleNamespace(name="topic", topic_id=TOPIC_ID, partitions=[None, None])

    def find(self, name: str) -> object:
        return self.topic if name == "topic" else None

    def find_by_id(self, topic_id: uuid.UUID | None) -> object:
        return self.topic if topic_id == TOPIC_ID else None


class Wire:
    def __init__(self) -> None:
        self.cluster = Cluster()
        stand_in = SimpleNamespace(
            groups=self.cluster.groups,
            topics=TopicsOfOne(),
            node_id=1,
            cold_reads=None,
            advertised=lambda: ("broker.example", 9092),
        )
        # A real broker needs a data directory. The handlers use only these attributes.
        self.broker = cast(Broker, stand_in)

    @staticmethod
    def encoded(handler: Any, version: int, fields: Mapping[str, object]) -> bytes:
        schema = load_request_schema(handler.API_KEY, version)
        buffer = io.BytesIO()
        entity_writer(schema)(buffer, entity_builder(schema)(fields))  # type: ignore[arg-type]  # of that schema
        return buffer.getvalue()

    def outcome(self, handler: Any, version: int, fields: Mapping[str, object]) -> Any:
        request = read_request(handler.API_KEY, version, self.encoded(handler, version, fields), 0)
        context = RequestContext(api_version=version, client_id="client", client_host="10.0.0.1")
        answer = handler.handle(self.broker, context, request)
        self.cluster.tick()
        return answer

    def ask(self, handler: Any, version: int, **fields: object) -> Any:
        answer = self.outcome(handler, version, fields)
        if isinstance(answer, Deferred):
            assert answer.done
            answers: list[Any] = []
            answer.then(answers.append)
            answer = answers[0]
        data = response_writer(handler.API_KEY, version)(answer)
        response, size = entity_reader(load_response_schema(handler.API_KEY, version))(data, 0)
        assert size == len(data)
        return response

    def join(self, version: int, **fields: object) -> Any:
        asked = {
            "group_id": GROUP,
            "session_timeout": 10_000,
            "rebalance_timeout": 20_000,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": subscription("topic")}],
            **fields,
        }
        answer = self.ask(join_group, version, **asked)
        if answer.error_code is ErrorCode.member_id_required:
            answer = self.ask(join_group, version, **{**asked, "member_id": answer.member_id})
        return answer

    def stable_member(self) -> str:
        joined = self.join(9)
        assignment = {"member_id": joined.member_id, "assignment": b"all"}
        self.ask(
            sync_group,
            5,
            group_id=GROUP,
            generation_id=1,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[assignment],
        )
        return cast(str, joined.member_id)

    def commit(self, version: int, offset: int = 5, topic: str = "topic", partition: int = 0, **fields: object) -> Any:
        topic_id = TOPIC_ID if topic == "topic" else uuid.UUID(int=99)
        part = {
            "partition_index": partition,
            "committed_offset": offset,
            "committed_leader_epoch": 3,
            "committed_metadata": "note",
        }
        topics = [{"name": topic, "topic_id": topic_id, "partitions": [part]}]
        asked = {
            "group_id": GROUP,
            "generation_id_or_member_epoch": -1,
            "topics": topics,
            "retention_time": -1,
            **fields,
        }
        return self.ask(offset_commit, version, **asked).topics[0].partitions[0].error_code


@pytest.mark.parametrize("version", join_group.VERSIONS)
def test_one_member_joins_syncs_heartbeats_and_leaves(version: int) -> None:
    wire = Wire()
    joined = wire.join(version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (ErrorCode.none, 1, "range")
    member = {"group_id": GROUP, "generation_id": 1, "member_id": joined.member_id}
    synced = wire.ask(
        sync_group,
        min(version, 5),
        **member,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": joined.member_id, "assignment": b"all"}],
    )
    assert synced.assignment == b"all"
    assert wire.ask(heartbeat, min(version, 4), **member).error_code is ErrorCode.none
    leaving = {"group_id": GROUP, "member_id": joined.member_id, "members": [{"member_id": joined.member_id}]}
    left = wire.ask(leave_group, min(version, 5), **leaving)
    assert left.error_code is ErrorCode.none
    assert [member.error_code for member in getattr(left, "members", ())] in ([], [ErrorCode.none])
    assert wire.ask(heartbeat, min(version, 4), **member).error_code is ErrorCode.unknown_member_id


@pytest.mark.parametrize("version", join_group.VERSIONS)
def test_a_refused_join_has_no_protocol(version: int) -> None:
    refused = Wire().join(version, session_timeout=1)
    assert refused.error_code is ErrorCode.invalid_session_timeout
    assert refused.protocol_name == (None if version >= 7 else "")
    assert (refused.generation_id, refused.members) == (-1, ())


def test_without_a_rebalance_timeout_the_session_timeout_counts() -> None:
    wire = Wire()
    wire.join(0)
    wire.cluster.advance(10_000)
    assert wire.cluster.describe(GROUP).state == "Empty"


def test_a_protocol_named_twice_counts_once() -> None:
    twice = [{"name": "range", "metadata": b"first"}, {"name": "range", "metadata": b"second"}]
    joined = Wire().join(9, protocols=twice)
    assert [member.metadata for member in joined.members] == [b"first"]


def test_from_version_five_on_a_sync_must_name_the_protocol() -> None:
    wire = Wire()
    member_id = wire.stable_member()
    asked = {"group_id": GROUP, "generation_id": 1, "member_id": member_id}
    assert wire.ask(sync_group, 4, **asked).error_code is ErrorCode.none
    assert wire.ask(sync_group, 5, **asked).error_code is ErrorCode.inconsistent_group_protocol


@pytest.mark.parametrize("version", leave_group.VERSIONS)
def test_a_member_that_is_not_there_cannot_leave(version: int) -> None:
    answer = Wire().ask(leave_group, version, group_id=GROUP, member_id="nobody", members=[{"member_id": "nobody"}])
    error = answer.error_code if version < 3 else answer.members[0].error_code
    assert error is ErrorCode.unknown_member_id


@pytest.mark.parametrize("version", offset_commit.VERSIONS)
def test_a_commit_is_fetched_with_its_metadata(version: int) -> None:
    wire = Wire()
    assert wire.commit(version) is ErrorCode.none
    for fetch_version in offset_fetch.VERSIONS:
        asked = {"name": "topic", "topic_id": TOPIC_ID, "partition_indexes": [0, 1]}
        group = {"group_id": GROUP, "topics": [asked]}
        answer = wire.ask(offset_fetch, fetch_version, **group, groups=[group])
        topics = answer.topics if fetch_version < 8 else answer.groups[0].topics
        committed, missing = topics[0].partitions
        assert (committed.committed_offset, committed.metadata) == (5, "note")
        assert getattr(committed, "committed_leader_epoch", 3) == (3 if version >= 6 or fetch_version < 5 else -1)
        assert (missing.committed_offset, missing.metadata, missing.error_code) == (-1, "", ErrorCode.none)


@pytest.mark.parametrize("version", [version for version in offset_fetch.VERSIONS if version >= 2])
def test_null_fetches_everything(version: int) -> None:
    wire = Wire()
    wire.commit(9)
    group = {"group_id": GROUP, "topics": None}
    answer = wire.ask(offset_fetch, version, **group, groups=[group, {"group_id": "absent", "topics": None}])
    topics = answer.topics if version < 8 else answer.groups[0].topics
    assert [partition.committed_offset for partition in topics[0].partitions] == [5]
    if version >= 8:
        assert [group.group_id for group in answer.groups] == [GROUP, "absent"]
        assert answer.groups[1].topics == ()
    if version >= 10:
        assert topics[0].topic_id == TOPIC_ID


@pytest.mark.parametrize("version", offset_commit.VERSIONS)
def test_commits_to_missing_partitions_are_rejected(version: int) -> None:
    wire = Wire()
    missing_topic = ErrorCode.unknown_topic_id if version >= 10 else ErrorCode.unknown_topic_or_partition
    assert wire.commit(version, topic="absent") is missing_topic
    assert wire.commit(version, partition=2) is ErrorCode.unknown_topic_or_partition
    assert wire.commit(version, partition=-1) is ErrorCode.unknown_topic_or_partition
    missing_group = ErrorCode.group_id_not_found if version >= 9 else ErrorCode.illegal_generation
    assert wire.commit(version, generation_id_or_member_epoch=1, member_id="somebody") is missing_group


def test_one_bad_partition_does_not_spoil_a_commit() -> None:
    wire = Wire()
    parts = [
        {"partition_index": index, "committed_offset": 1, "committed_metadata": metadata}
        for index, metadata in ((0, None), (1, "x" * 5_000), (2, ""))
    ]
    topics = [{"name": "absent", "partitions": parts[:1]}, {"name": "topic", "partitions": parts}]
    answer = wire.ask(offset_commit, 9, group_id=GROUP, generation_id_or_member_epoch=-1, topics=topics)
    assert [[part.error_code for part in topic.partitions] for topic in answer.topics] == [
        [ErrorCode.unknown_topic_or_partition],
        [ErrorCode.none, ErrorCode.offset_metadata_too_large, ErrorCode.unknown_topic_or_partition],
    ]


def test_an_unknown_topic_id_differs_from_a_partition_without_an_offset() -> None:
    asked = {"topic_id": uuid.UUID(int=99), "partition_indexes": [0]}
    answer = Wire().ask(offset_fetch, 10, groups=[{"group_id": GROUP, "topics": [asked]}])
    partition = answer.groups[0].topics[0].partitions[0]
    assert (partition.error_code, partition.committed_offset) == (ErrorCode.unknown_topic_id, -1)


def test_a_retention_of_old_versions_is_kept() -> None:
    wire = Wire()
    wire.commit(2, retention_time=datetime.timedelta(minutes=1))
    wire.cluster.clock.advance(60_000)
    wire.cluster.groups.expire()
    assert wire.cluster.groups.describe(GROUP) is None


def test_offsets_are_deleted_one_by_one() -> None:
    wire = Wire()
    wire.commit(9)
    asked = [
        {"name": name, "partitions": [{"partition_index": index} for index in (0, 5)]} for name in ("topic", "absent")
    ]
    answer = wire.ask(offset_delete, 0, group_id=GROUP, topics=asked)
    assert [[part.error_code for part in topic.partitions] for topic in answer.topics] == [
        [ErrorCode.none, ErrorCode.unknown_topic_or_partition],
        [ErrorCode.unknown_topic_or_partition] * 2,
    ]
    assert wire.cluster.offsets(GROUP) == {}
    missing = wire.ask(offset_delete, 0, group_id="absent", topics=asked)
    assert (missing.error_code, missing.topics) == (ErrorCode.group_id_not_found, ())


@pytest.mark.parametrize("version", list_groups.VERSIONS)
def test_groups_are_listed(version: int) -> None:
    wire = Wire()
    wire.stable_member()
    (listed,) = wire.ask(list_groups, version).groups
    assert (listed.group_id, listed.protocol_type) == (GROUP, "consumer")
    assert getattr(listed, "group_state", "Stable") == "Stable"
    assert getattr(listed, "group_type", "classic") == "classic"


def test_groups_are_listed_by_state_and_type() -> None:
    wire = Wire()
    wire.stable_member()

    def count(**filters: object) -> int:
        return len(wire.ask(list_groups, 5, **filters).groups)

    assert count(states_filter=["STABLE", "dead"], types_filter=["Classic"]) == 1
    assert count(states_filter=["Empty"]) == count(types_filter=["consumer"]) == count(types_filter=["odd"]) == 0


@pytest.mark.parametrize("version", describe_groups.VERSIONS)
def test_groups_are_described(version: int) -> None:
    wire = Wire()
    member_id = wire.stable_member()
    answer = wire.ask(describe_groups, version, groups=[GROUP, "absent"], include_authorized_operations=True)
    group, absent = answer.groups
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "client", "/10.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (subscription("topic"), b"all")
    assert absent.group_state == "Dead"
    assert absent.error_code is (ErrorCode.group_id_not_found if version >= 6 else ErrorCode.none)


@pytest.mark.parametrize("version", delete_groups.VERSIONS)
def test_groups_are_deleted(version: int) -> None:
    wire = Wire()
    wire.stable_member()
    wire.commit(9, group_id="idle")
    answer = wire.ask(delete_groups, version, groups_names=[GROUP, "idle", "absent", "idle"])
    assert {result.group_id: result.error_code for result in answer.results} == {
        GROUP: ErrorCode.non_empty_group,
        "idle": ErrorCode.none,
        "absent": ErrorCode.group_id_not_found,
    }
    assert wire.ask(delete_groups, version, groups_names=[]).results == ()


@pytest.mark.parametrize("version", find_coordinator.VERSIONS)
@pytest.mark.parametrize("key_type", [0, 1, 2, 9])
def test_this_broker_coordinates_groups_and_transactions(version: int, key_type: int) -> None:
    answer = Wire().ask(find_coordinator, version, key="a", key_type=key_type, coordinator_keys=["a", "b"])
    is_known = key_type < 2 or version == 0
    found = answer.coordinators if version >= 4 else [answer]
    for coordinator in found:
        assert coordinator.error_code is (ErrorCode.none if is_known else ErrorCode.invalid_request)
        assert (coordinator.node_id, coordinator.host) == ((1, "broker.example") if is_known else (-1, ""))
    if version >= 4:
        assert [coordinator.key for coordinator in found] == ["a", "b"]


def test_a_member_with_too_many_protocols_is_refused() -> None:
    protocols = [{"name": str(number), "metadata": b""} for number in range(join_group.PROTOCOLS_MAX + 1)]
    assert Wire().join(9, protocols=protocols).error_code is ErrorCode.invalid_request


@pytest.mark.parametrize(
    ("handler", "version", "fields"),
    [
        (find_coordinator, 4, {"coordinator_keys": MANY}),
        (describe_groups, 6, {"groups": MANY}),
        (delete_groups, 2, {"groups_names": MANY}),
        (leave_group, 5, {"group_id": GROUP, "members": [{"member_id": ""}] * len(MANY)}),
        (sync_group, 5, {"group_id": GROUP, "assignments": [{"member_id": "", "assignment": b""}] * len(MANY)}),
        (offset_fetch, 8, {"groups": [{"group_id": "", "topics": []}] * len(MANY)}),
        (offset_fetch, 1, {"group_id": GROUP, "topics": [{"name": "topic", "partition_indexes": range(len(MANY))}]}),
        (offset_commit, 9, {"group_id": GROUP, "topics": [{"name": "topic", "partitions": []}] * len(MANY)}),
        (offset_delete, 0, {"group_id": GROUP, "topics": [{"name": "topic", "partitions": []}] * len(MANY)}),
    ],
)
def test_a_request_with_too_many_items_ends_the_connection(
    handler: Any, version: int, fields: dict[str, object]
) -> None:
    body = Wire.encoded(handler, version, fields)
    header_schema = load_request_schema(handler.API_KEY, version).__header_schema__
    header = request_header(handler.API_KEY, version, 1, flexible=header_schema.__flexible__)
    reply = Engine(Wire().broker).execute(memoryview(header + body), "10.0.0.1", 1)
    assert isinstance(reply, Disconnect)
    assert f"more than {REQUEST_ITEMS_MAX} items" in reply.reason


def test_duplicates_in_a_request_are_answered_once_if_the_response_may_be_large() -> None:
    wire = Wire()
    wire.commit(9)
    assert len(wire.ask(describe_groups, 6, groups=[GROUP, "other", GROUP]).groups) == 2
    everything = {"group_id": GROUP, "topics": None}
    one = {"group_id": GROUP, "topics": [{"name": "topic", "partition_indexes": [0]}]}
    assert len(wire.ask(offset_fetch, 9, groups=[everything, one, everything, one]).groups) == 3
