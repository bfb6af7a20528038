"""Producing, and reading by manual assignment, with each client."""

import time

import pytest

from tests.clients.client import T0, Client, Got, Sent
from tests.clients.conftest import MakeTopic
from tests.clients.waiting import eventually

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def contents(records: list[Got]) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in records]


def test_produced_records_are_read_back_in_order(client: Client, topic: str) -> None:
    sent = [Sent(f"value {i}".encode(), key=f"key {i}".encode()) for i in range(200)]
    places = client.produce(topic, sent)
    assert [place.offset for place in places] == list(range(200))
    got = client.read(topic, 0, 0, 200)
    assert contents(got) == [(record.key, record.value) for record in sent]
    assert [record.offset for record in got] == list(range(200))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_every_codec_survives_the_way(client: Client, topic: str, codec: str, idempotent: bool) -> None:
    sent = [Sent(f"{codec} {i} ".encode() * 30, key=f"k{i}".encode()) for i in range(50)]
    client.produce(topic, sent, codec=codec, idempotent=idempotent)
    assert contents(client.read(topic, 0, 0, 50)) == [(record.key, record.value) for record in sent]


def test_each_client_reads_the_compressed_records_of_the_others(
    client: Client, topic: str, broker_address: str
) -> None:
    from tests.clients.conftest import CLIENTS

    expected: list[bytes] = []
    for name, make in CLIENTS.items():
        other = make(broker_address)
        for codec in CODECS:
            values = [f"{name} {codec} {i}".encode() * 10 for i in range(5)]
            other.produce(topic, [Sent(value) for value in values], codec=codec)
            expected.extend(values)
        other.close()
    assert [record.value for record in client.read(topic, 0, 0, len(expected))] == expected


def test_headers_nulls_and_empty_bytes_are_kept(client: Client, topic: str) -> None:
    sent = [
        Sent(None, key=b"tombstone"),
        Sent(b"", key=b""),
        Sent(b"no key"),
        Sent(bytes(range(256)), headers=(("one", b"1"), ("two", b""), ("one", bytes([0, 255])))),
        Sent(b"unicode", headers=(("schlüssel", b"wert"),)),
    ]
    client.produce(topic, sent)
    got = client.read(topic, 0, 0, len(sent))
    assert [(record.key, record.value, record.headers) for record in got] == [
        (record.key, record.value, record.headers) for record in sent
    ]


def test_an_explicit_partition_and_timestamp_are_kept(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(4)
    sent = [Sent(f"{i}".encode(), key=b"same key", partition=i, timestamp=T0 + i) for i in range(4)]
    places = client.produce(topic, sent)
    assert sorted(place.partition for place in places) == [0, 1, 2, 3]
    for i in range(4):
        (record,) = client.read(topic, i, 0, 1)
        assert (record.value, record.timestamp) == (f"{i}".encode(), T0 + i)


def test_without_a_timestamp_the_record_carries_the_time_of_sending(client: Client, topic: str) -> None:
    before = int(time.time() * 1000)
    client.produce(topic, [Sent(b"now")])
    (record,) = client.read(topic, 0, 0, 1)
    assert before <= record.timestamp <= int(time.time() * 1000)


def test_log_append_time_overrides_the_clients_timestamp(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    client.produce(topic, [Sent(b"old", timestamp=T0), Sent(b"older", timestamp=T0 - 5)])
    got = client.read(topic, 0, 0, 2)
    assert all(before <= record.timestamp <= int(time.time() * 1000) for record in got)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_reading_can_begin_inside_a_batch(client: Client, topic: str, codec: str) -> None:
    client.produce(topic, [Sent(f"{i}".encode()) for i in range(30)], codec=codec)
    for offset in (1, 7, 15, 29):
        got = client.read(topic, 0, offset, 30 - offset)
        assert [record.offset for record in got] == list(range(offset, 30))


def test_a_message_larger_than_the_readers_limit_comes_whole(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes="8000000")
    large = bytes(range(256)) * (4_000_000 // 256)
    client.produce(topic, [Sent(b"before"), Sent(large), Sent(b"after")])
    got = client.read(topic, 0, 0, 3)
    assert [record.value for record in got] == [b"before", large, b"after"]


def test_a_message_over_the_topics_limit_is_refused_and_its_neighbours_are_not(
    client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(max_message_bytes="2000")
    client.produce(topic, [Sent(b"x" * 1500)])
    with pytest.raises(client.too_large):
        client.produce(topic, [Sent(b"x" * 5000)])
    client.produce(topic, [Sent(b"y" * 1500)])
    assert [record.value for record in client.read(topic, 0, 0, 2)] == [b"x" * 1500, b"y" * 1500]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acknowledgement_level_appends(client: Client, topic: str, acks: str) -> None:
    client.produce(topic, [Sent(b"one"), Sent(b"two")], acks=acks)
    eventually(lambda: client.bounds(topic, 0) == (0, 2), "both records are there")
    assert [record.value for record in client.read(topic, 0, 0, 2)] == [b"one", b"two"]


def test_producing_to_an_unknown_topic_makes_it(client: Client, group: str) -> None:
    name = f"made-for-{group}"
    client.produce(name, [Sent(b"first")])
    assert [record.value for record in client.read(name, 0, 0, 1)] == [b"first"]


def test_a_reader_at_the_end_is_woken_by_the_next_record(client: Client, topic: str, group: str) -> None:
    member = client.join(group, topic)
    try:
        eventually(lambda: member.assignment() == {0}, "the member has its partition")
        for i in range(5):
            client.produce(topic, [Sent(f"{i}".encode())])
            eventually(lambda i=i: len(member.received()) == i + 1, f"record {i} arrives")  # type: ignore[misc] # a default argument
        assert [record.value for record in member.received()] == [b"0", b"1", b"2", b"3", b"4"]
    finally:
        member.close()


def test_an_idempotent_producer_leaves_no_gap_and_no_duplicate(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    sent = [Sent(f"{i}".encode(), partition=i % 3) for i in range(600)]
    client.produce(topic, sent, idempotent=True)
    for partition in range(3):
        assert client.bounds(topic, partition) == (0, 200)
        values = [record.value for record in client.read(topic, partition, 0, 200)]
        assert values == [f"{i}".encode() for i in range(partition, 600, 3)]


def test_offsets_are_found_by_time(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    client.produce(topic, [Sent(b"x", partition=0, timestamp=T0 + 100 * i) for i in range(10)])
    client.produce(topic, [Sent(b"x", partition=1, timestamp=T0 + 100 * i) for i in range(3)], codec="gzip")
    assert client.offsets_for_time(topic, {0: T0, 1: T0}) == {0: 0, 1: 0}
    assert client.offsets_for_time(topic, {0: T0 + 450, 1: T0 + 150}) == {0: 5, 1: 2}
    assert client.offsets_for_time(topic, {0: T0 + 900, 1: T0 + 201}) == {0: 9, 1: None}
    assert client.bounds(topic, 0) == (0, 10)
    assert client.bounds(topic, 1) == (0, 3)
