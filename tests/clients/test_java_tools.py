"""The Java clients, through the command-line tools of Kafka 4.3.1 from Maven Central."""

import json
import secrets
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.clients.client import T0, Sent
from tests.clients.confluent import ConfluentClient
from tests.clients.conftest import MakeTopic
from tests.clients.java import JavaMember, JavaTools
from tests.clients.waiting import eventually

pytestmark = pytest.mark.java

PARTITIONS = 4

# The newest version of each API that Java 4.3.1 and this broker share. Java sends this version.
USABLE = {
    "Produce": 13,
    "Fetch": 18,
    "ListOffsets": 11,
    "Metadata": 13,
    "OffsetCommit": 10,
    "OffsetFetch": 10,
    "FindCoordinator": 6,
    "JoinGroup": 9,
    "Heartbeat": 4,
    "LeaveGroup": 5,
    "SyncGroup": 5,
    "DescribeGroups": 6,
    "ListGroups": 5,
    "ApiVersions": 4,
    "CreateTopics": 7,
    "DeleteTopics": 6,
    "DeleteRecords": 2,
    "InitProducerId": 5,
    "OffsetForLeaderEpoch": 4,
    "DescribeConfigs": 4,
    "AlterConfigs": 2,
    "DescribeLogDirs": 5,
    "CreatePartitions": 3,
    "DeleteGroups": 2,
    "IncrementalAlterConfigs": 1,
    "ListPartitionReassignments": 0,
    "OffsetDelete": 0,
    "DescribeCluster": 2,
    "DescribeProducers": 0,
    "DescribeTopicPartitions": 0,
}


@pytest.fixture
def java(java_tools: None, broker_address: str) -> JavaTools:
    return JavaTools(broker_address)


@pytest.fixture
def confluent(broker_address: str) -> ConfluentClient:
    return ConfluentClient(broker_address)


def test_java_finds_the_newest_version_of_every_api(java: JavaTools) -> None:
    shown = java.run("BrokerApiVersionsCommand").out
    usable: dict[str, int] = {}
    for line in shown.splitlines():
        if "[usable: " in line:
            name = line.strip().split("(")[0]
            usable[name] = int(line.split("[usable: ")[1].split("]")[0])
    assert {name: usable.get(name) for name in USABLE} == USABLE


def test_topics_are_made_described_grown_and_deleted(java: JavaTools) -> None:
    name = f"java-{secrets.token_hex(4)}"
    java.topics("--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=777000")
    again = java.topics("--create", "--topic", name, check=False)
    assert again.code != 0
    assert "TopicExistsException" in again.err + again.out
    described = java.topics("--describe", "--topic", name).lines
    assert "PartitionCount: 2" in described[0]
    assert "retention.ms=777000" in described[0]
    java.topics("--alter", "--topic", name, "--partitions", "5")
    assert len(java.topics("--describe", "--topic", name).lines) == 6
    java.topics("--delete", "--topic", name)
    eventually(lambda: name not in java.topics("--list").lines, "it is gone from the list")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_survives_the_way(java: JavaTools, confluent: ConfluentClient, topic: str, codec: str) -> None:
    lines = [f"{codec} {i} " * 20 for i in range(20)]
    # Idempotence is the default in Java. Disable it for one codec.
    java.produce(topic, lines, f"compression.type={codec}", f"enable.idempotence={str(codec != 'gzip').lower()}")
    assert [record.value for record in confluent.read(topic, 0, 0, 20)] == [line.encode() for line in lines]


def test_java_reads_records_of_other_clients(
    java: JavaTools, confluent: ConfluentClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        confluent.produce(topic, [Sent(codec.encode(), key=b"k", partition=1, timestamp=T0)], codec=codec)
    confluent.produce(topic, [Sent(None, key=b"gone", partition=1, headers=(("h", b"1"), ("i", b"2")), timestamp=T0)])
    show = ("partition", "offset", "timestamp", "key", "headers")
    lines = java.consume(topic, 6, "--partition", "1", "--offset", "earliest", show=show)
    expected = [
        f"CreateTime:{T0}\tPartition:1\tOffset:{i}\tNO_HEADERS\tk\t{codec}"
        for i, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd"))
    ]
    assert lines == [*expected, f"CreateTime:{T0}\tPartition:1\tOffset:5\th:1,i:2\tgone\tnull"]
    # Start in the middle of a batch: librdkafka may have put several records into one batch.
    assert java.consume(topic, 2, "--partition", "1", "--offset", "3") == ["lz4", "zstd"]


def test_headers_keys_and_nulls_of_java_arrive(java: JavaTools, confluent: ConfluentClient, topic: str) -> None:
    reader = ("parse.key=true", "parse.headers=true", "null.marker=NULL", "key.separator=|", "headers.delimiter=;")
    java.produce(topic, ["a:1,b:2;key|value", "NULL;NULL|no key", "NULL;tombstone|NULL"], reader=reader)
    got = confluent.read(topic, 0, 0, 3)
    assert [(record.key, record.value, record.headers) for record in got] == [
        (b"key", b"value", (("a", b"1"), ("b", b"2"))),
        (None, b"no key", ()),
        (b"tombstone", None, ()),
    ]


def test_a_message_over_the_topics_limit_is_refused(
    java: JavaTools, confluent: ConfluentClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(max_message_bytes="2000")
    result = java.run("ConsoleProducer", "--topic", topic, stdin="x" * 5000 + "\n", check=False)
    assert "RecordTooLargeException" in result.err + result.out
    assert confluent.bounds(topic, 0) == (0, 0)


def test_a_group_resumes_is_described_reset_and_deleted(
    java: JavaTools, confluent: ConfluentClient, topic: str, group: str
) -> None:
    confluent.produce(topic, [Sent(f"{i}".encode(), timestamp=T0 + 1000 * i) for i in range(10)])
    assert java.consume(topic, 4, "--group", group, "--from-beginning") == ["0", "1", "2", "3"]
    assert java.consume(topic, 2, "--group", group) == ["4", "5"]

    def state() -> tuple[str, str, str]:
        (row,) = java.table(java.groups("--describe", "--group", group))
        return row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]

    def reset(*how: str) -> str:
        (row,) = java.table(java.groups("--group", group, "--topic", topic, "--reset-offsets", *how))
        return row["NEW-OFFSET"]

    assert state() == ("6", "10", "4")
    moment = datetime.fromtimestamp(T0 / 1000 + 3, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    assert reset("--to-datetime", moment, "--dry-run") == "3"
    assert reset("--shift-by", "-2", "--execute") == "4"
    assert state() == ("4", "10", "6")
    assert [row["STATE"] for row in java.table(java.groups("--list", "--state")) if row["GROUP"] == group] == ["Empty"]
    java.groups("--delete-offsets", "--group", group, "--topic", topic)
    java.groups("--delete", "--group", group)
    gone = java.groups("--describe", "--group", group, check=False)
    assert "GroupIdNotFoundException" in gone.err + gone.out or "does not exist" in gone.err + gone.out


def test_offsets_are_found_by_time_and_records_deleted(
    java: JavaTools, confluent: ConfluentClient, topic: str, tmp_path: Path
) -> None:
    confluent.produce(topic, [Sent(b"x", timestamp=T0 + at) for at in (10, 90, 50)])

    def offsets(when: str) -> list[str]:
        return java.run("GetOffsetShell", "--topic", topic, "--time", when).lines

    assert offsets("latest") == [f"{topic}:0:3"]
    assert offsets("max-timestamp") == [f"{topic}:0:1"]
    assert offsets(str(T0 + 20)) == [f"{topic}:0:1"]
    plan = tmp_path / "plan.json"
    wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": 2}], "version": 1}
    plan.write_text(json.dumps(wanted), encoding="utf-8")
    deleted = java.run("DeleteRecordsCommand", "--offset-json-file", str(plan))
    assert f"partition: {topic}-0\tlow_watermark: 2" in deleted.out
    assert offsets("earliest") == [f"{topic}:0:2"]


def test_settings_and_disks_are_described(java: JavaTools, confluent: ConfluentClient, topic: str) -> None:
    confluent.produce(topic, [Sent(b"x" * 1000)])
    add = "cleanup.policy=[compact,delete],max.message.bytes=5000"
    java.configs("--alter", "--topic", topic, "--add-config", add)
    described = java.configs("--describe", "--topic", topic, "--all").out
    assert "cleanup.policy=compact,delete sensitive=false" in described
    assert "retention.ms=604800000 sensitive=false synonyms={}" in described
    java.configs("--alter", "--topic", topic, "--delete-config", "max.message.bytes")
    changed = java.configs("--describe", "--topic", topic).out
    assert "cleanup.policy=compact,delete" in changed
    assert "max.message.bytes" not in changed
    shown = java.run("LogDirsCommand", "--describe", "--topic-list", topic).lines[-1]
    (folder,) = json.loads(shown)["brokers"][0]["logDirs"]
    assert [part["partition"] for part in folder["partitions"]] == [f"{topic}-0"]
    assert folder["partitions"][0]["size"] > 1000


def test_verifiable_and_measured_producers_lose_nothing(java: JavaTools, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    told = java.run("VerifiableProducer", "--topic", topic, "--max-messages", "500", "--acks", "-1").lines
    events = [json.loads(line) for line in told]
    assert sum(event["name"] == "producer_send_success" for event in events) == 500
    assert (events[-1]["sent"], events[-1]["acked"]) == (500, 500)
    java.run(
        "ProducerPerformance", "--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1"
    )
    read = java.run("ConsumerPerformance", "--topic", topic, "--num-records", "20500").lines
    assert read[-1].split(", ")[4] == "20500"
    producers = java.run("TransactionsCommand", "describe-producers", "--topic", topic, "--partition", "0").lines
    assert producers[0].split()[0] == "ProducerId"


@pytest.mark.parametrize(
    ("strategy", "static"),
    [("RangeAssignor", False), ("CooperativeStickyAssignor", False), ("RangeAssignor", True)],
    ids=["eager", "cooperative", "static"],
)
def test_members_share_the_partitions_as_they_come_and_go(
    java: JavaTools,
    confluent: ConfluentClient,
    broker_address: str,
    make_topic: MakeTopic,
    group: str,
    tmp_path: Path,
    strategy: str,
    static: bool,
) -> None:
    topic = make_topic(PARTITIONS)
    everything = frozenset(range(PARTITIONS))

    def join(label: str, log: str) -> JavaMember:
        more = ["--assignment-strategy", f"org.apache.kafka.clients.consumer.{strategy}"]
        if static:
            more += ["--group-instance-id", label]
        return JavaMember(broker_address, tmp_path, log, group, topic, *more)

    def shared(one: JavaMember, other: JavaMember) -> bool:
        left, right = one.assignment(), other.assignment()
        return bool(left) and bool(right) and not left & right and left | right == everything

    first = join("first", "first")
    members = [first]
    try:
        eventually(lambda: first.assignment() == everything, "the first has all")
        second = join("second", "second")
        members.append(second)
        eventually(lambda: shared(first, second), "both share all partitions")
        confluent.produce(topic, [Sent(f"{i}".encode(), partition=i % PARTITIONS) for i in range(20)])
        wanted = {f"{i}" for i in range(20)}
        eventually(lambda: first.values() | second.values() == wanted, "every record is read")
        before, kept = first.rebalances(), second.assignment()
        second.close()
        if static:
            back = join("second", "second-again")
            members.append(back)
            eventually(lambda: back.assignment() == kept, "the static member has its partitions back")
            assert first.rebalances() == before, "the member that stayed saw a rebalance"
        else:
            eventually(lambda: first.assignment() == everything, "the first has all again")
    finally:
        for member in members:
            member.close()
