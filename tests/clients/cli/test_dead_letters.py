"""`headgate dead`, with letters of the command line, of Kafka Connect and of Spring."""

import base64
import json
import re
import time
from collections import Counter

import pytest

from headgate.serdes import Poison, Reason, Record, to_dead_letter
from headgate.serdes.redrive_mark import Mark, MarkState, mark_headers
from tests.clients.cli.conftest import Cli


def write(cli: Cli, topic: str, letters: list[Record]) -> None:
    lines = [
        {
            "key_base64": None if each.key is None else base64.b64encode(each.key).decode(),
            "value_base64": None if each.value is None else base64.b64encode(each.value).decode(),
            "headers": [
                {"name": name, "value_base64": base64.b64encode(value or b"").decode()} for name, value in each.headers
            ],
            "partition": each.partition,
        }
        for each in letters
    ]
    cli("produce", topic, "-J", stdin="\n".join(map(json.dumps, lines)).encode())


def letter(source: str, number: int, reason: Reason = Reason.TRUNCATED, attempts: int = 0) -> Record:
    headers = ((("headgate.redrive.attempt", str(attempts).encode()),) if attempts else ()) + (("own", b"header"),)
    origin = Record(source, b"key-%d" % number, b"\0\0\0\0\1\xff%d" % number, headers, 0, number, 1000 + number)
    poison = Poison(reason, "id: a number of more than 64 bits at 0", origin.value, 1)
    now_ms = time.time_ns() // 1_000_000
    return to_dead_letter(origin, poison, dead_letter_topic=source + ".dead", application="shop", now_ms=now_ms)


@pytest.fixture
def topic(cli: Cli, request: pytest.FixtureRequest) -> str:
    name = f"dead-{re.sub('[^a-z_]', '_', request.node.name.removeprefix('test_'))[:70]}"
    cli("topic", "create", name, f"{name}.dead")
    return name


def values(cli: Cli, topic: str) -> list[bytes]:
    rows = [json.loads(line) for line in cli("consume", topic, "-e", "--json", "--base64").lines]
    return [base64.b64decode(row["value_base64"]) for row in rows]


def test_letters_are_listed_counted_and_shown(cli: Cli, topic: str) -> None:
    write(cli, f"{topic}.dead", [letter(topic, 0), letter(topic, 1, Reason.UNKNOWN_SCHEMA), letter(topic, 2)])
    rows = [json.loads(line) for line in cli("dead", "list", f"{topic}.dead", "--json").lines]
    assert [(row["reason"], row["source"]["offset"], row["state"]) for row in rows] == [
        ("TRUNCATED", 0, "waiting"),
        ("UNKNOWN_SCHEMA", 1, "waiting"),
        ("TRUNCATED", 2, "waiting"),
    ]
    assert len(cli("dead", "list", f"{topic}.dead", "--reason", "unknown_schema").rows) == 1
    assert len(cli("dead", "list", f"{topic}.dead", "--since", "1h", "--schema-id", "1", "-n", "2").rows) == 2
    assert cli("dead", "list", f"{topic}.dead", "--until", "1h").rows == []
    assert cli("dead", "count", f"{topic}.dead").rows == [
        ["TRUNCATED", "1", "waiting", "2"],
        ["UNKNOWN_SCHEMA", "1", "waiting", "1"],
    ]
    shown = cli("dead", "show", f"{topic}.dead", "0:1").lines
    assert shown[-2:] == [
        "00000000  00 00 00 00 01 ff 31                             ......1",
        " " * 25 + "^^",
    ]
    assert "there is no letter 0:99" in cli("dead", "show", f"{topic}.dead", "0:99", code=3).err
    assert "NO_SUCH is not a reason" in cli("dead", "list", f"{topic}.dead", "--reason", "no_such", code=2).err


def test_a_letter_is_redriven_once_and_unchanged(cli: Cli, topic: str) -> None:
    letters = [letter(topic, number) for number in range(3)]
    write(cli, f"{topic}.dead", letters)
    dry = cli("dead", "redrive", f"{topic}.dead")
    assert dry.rows == [[topic, "3"]]
    assert "dry run" in dry.err
    assert values(cli, topic) == []
    for _ in range(2):
        cli("dead", "redrive", f"{topic}.dead", "--execute")
    assert values(cli, topic) == [each.value for each in letters]
    row = json.loads(cli("consume", topic, "-n", "1", "--json", "--raw").lines[0])
    assert row["key"] == "key-0"
    assert [header["name"] for header in row["headers"]] == [
        "own",
        "headgate.redrive.attempt",
        "headgate.redrive.audit",
    ]
    assert cli("dead", "count", f"{topic}.dead").rows == [["TRUNCATED", "1", "redriven", "3"]]


def test_a_letter_of_a_partition_that_is_gone_goes_to_another(cli: Cli, topic: str) -> None:
    origin = Record(topic, b"k", b"v", (), 7, 1, 1000)
    poison = Poison(Reason.TRUNCATED, "", b"v", 1)
    write(cli, f"{topic}.dead", [to_dead_letter(origin, poison, dead_letter_topic="d", application="a", now_ms=1)])
    cli("dead", "redrive", f"{topic}.dead", "--execute")
    assert values(cli, topic) == [b"v"]


def test_only_letters_with_a_transient_reason_are_redriven(cli: Cli, topic: str) -> None:
    transient = letter(topic, 1, Reason.REGISTRY_UNAVAILABLE)
    write(cli, f"{topic}.dead", [letter(topic, 0), transient])
    cli("dead", "redrive", f"{topic}.dead", "--transient", "--execute")
    assert values(cli, topic) == [transient.value]


def test_letters_that_failed_too_often_or_have_no_topic_stay(cli: Cli, topic: str) -> None:
    write(cli, f"{topic}.dead", [letter(topic, 0, attempts=9), letter(f"{topic}-gone", 1), Record("", None, b"?")])
    done = cli("dead", "redrive", f"{topic}.dead", "--execute", code=1)
    assert "letter 0:0 not sent: the record failed 10 times" in done.err
    assert f"letter 0:1 not sent: the source topic {topic}-gone does not exist" in done.err
    assert "letter 0:2 not sent: the headers do not contain the source topic" in done.err
    assert values(cli, topic) == []
    assert f"{topic}-gone" not in [row[0] for row in cli("topic", "list").rows]


def test_an_interrupted_letter_is_not_sent_again(cli: Cli, topic: str) -> None:
    write(cli, f"{topic}.dead", [letter(topic, 0), letter(topic, 1)])
    started = mark_headers(Mark(0, 0, MarkState.STARTED, "test", 1))
    write(cli, f"{topic}.dead", [Record("", None, None, started, 0)])
    done = cli("dead", "redrive", f"{topic}.dead", "--execute")
    assert "1 letters were interrupted before" in done.err
    assert values(cli, topic) == [letter(topic, 1).value]
    states = Counter(json.loads(line)["state"] for line in cli("dead", "list", f"{topic}.dead", "--json").lines)
    assert states == {"unknown": 1, "redriven": 1}


def test_letters_of_kafka_connect_and_spring_are_read(cli: Cli, topic: str) -> None:
    cli("topic", "alter", topic, "--partitions", "2")
    connect = {
        "topic": topic,
        "partition": "1",
        "offset": "42",
        "connector.name": "file-sink",
        "task.id": "0",
        "stage": "VALUE_CONVERTER",
        "class.name": "io.confluent.connect.avro.AvroConverter",
        "exception.class.name": "org.apache.kafka.connect.errors.DataException",
        "exception.message": "Failed to deserialize data",
        "exception.stacktrace": "…",
    }
    spring = {
        "original-topic": topic.encode(),
        "original-partition": (1).to_bytes(4, "big"),
        "original-offset": (43).to_bytes(8, "big"),
        "original-timestamp": (1_700_000_000_000).to_bytes(8, "big"),
        "original-timestamp-type": b"CreateTime",
        "original-consumer-group": b"billing",
        "exception-fqcn": b"org.springframework.kafka.listener.ListenerExecutionFailedException",
        "exception-cause-fqcn": b"org.springframework.kafka.support.serializer.DeserializationException",
        "exception-message": b"failed to deserialize",
        "exception-stacktrace": b"...",
    }
    of_connect = tuple((f"__connect.errors.{name}", text.encode()) for name, text in connect.items())
    of_spring = tuple((f"kafka_dlt-{name}", content) for name, content in spring.items())
    write(cli, f"{topic}.dead", [Record("", None, b"c", of_connect), Record("", None, b"s", of_spring)])
    rows = [json.loads(line) for line in cli("dead", "list", f"{topic}.dead", "--json").lines]
    assert [(row["convention"], row["reason"], row["application"]) for row in rows] == [
        ("connect", "CORRUPT", "file-sink"),
        ("spring", "CORRUPT", "billing"),
    ]
    assert [row["source"] for row in rows] == [{"topic": topic, "partition": 1, "offset": at} for at in (42, 43)]
    shown = cli("dead", "show", f"{topic}.dead", "0:1").out.decode()
    assert f"{topic}-1 offset 43" in shown
    assert "DeserializationException: failed to deserialize" in shown
    cli("dead", "redrive", f"{topic}.dead", "--execute")
    sent = [json.loads(line) for line in cli("consume", topic, "-e", "--json", "--raw").lines]
    assert [(row["partition"], row["value"]) for row in sent] == [(1, "c"), (1, "s")]


def test_purge_needs_a_confirmation(cli: Cli, topic: str) -> None:
    write(cli, f"{topic}.dead", [letter(topic, 0)])
    assert "add --yes" in cli("dead", "purge", f"{topic}.dead", code=2).err
    cli("dead", "purge", f"{topic}.dead", "--yes")
    assert cli("dead", "list", f"{topic}.dead").rows == []
