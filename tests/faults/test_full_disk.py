"""Full disk: deletes free space, the broker stops and starts, and writes resume when space is available."""

import contextlib
import errno
import gc
import logging
import os
from pathlib import Path

import pytest

from tests.faults.in_process import Asker, InProcessBroker
from tests.faults.test_disk import KAFKA_STORAGE_ERROR, NONE, create_topic, fetch, produce

SETTINGS = {"fetch.max.bytes": "50000000", "log.segment.bytes": "1048576"}
VALUE = bytes(100_000)


def fill_with_records(broker: Asker, topic: str) -> int:
    """Produce until the disk is full. Return the number of stored records."""
    for number in range(1_000):
        error, offset = produce(broker, topic, VALUE)
        if error != NONE:
            assert error == KAFKA_STORAGE_ERROR
            return number
        assert offset == number
    raise AssertionError("the disk was never full")


def fill_to_the_last_block(ballast: Path) -> None:
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        (ballast.parent / "probe").write_bytes(b"x")
    (ballast.parent / "probe").unlink()


def end_of(broker: Asker, topic: str, offset: int = 0) -> int:
    """Read all records from `offset` on. Return the offset after the last record."""
    while True:
        error, rows = fetch(broker, topic, offset)
        assert error == NONE
        if not rows:
            return offset
        assert rows == [(offset + number, VALUE) for number in range(len(rows))]
        offset += len(rows)


def delete_records(broker: Asker, topic: str, offset: int) -> tuple[str, int]:
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}]
    answer = broker.ask("delete_records", 1, {"topics": topics, "timeout": 1_000})
    (part,) = answer["topics"][0]["partitions"]
    return part["error_code"], part["low_watermark"]


def delete_topic(broker: Asker, topic: str) -> str:
    answer = broker.ask("delete_topics", 4, {"topic_names": [topic], "timeout": 1_000})
    code: str = answer["responses"][0]["error_code"]
    return code


def set_retention_ms(broker: Asker, topic: str, value: int) -> str:
    config = {"name": "retention.ms", "config_operation": 0, "value": str(value)}
    resource = {"resource_type": 2, "resource_name": topic, "configs": [config]}
    answer = broker.ask("incremental_alter_configs", 1, {"resources": [resource], "validate_only": False})
    code: str = answer["responses"][0]["error_code"]
    return code


@pytest.mark.parametrize("reserve", ["reserved", "nothing reserved"])
@pytest.mark.parametrize("offset", [-1, 12])
def test_deleting_records_empties_a_full_disk(small_disk: Path, offset: int, reserve: str) -> None:
    with InProcessBroker(small_disk / "data", SETTINGS) as broker:
        create_topic(broker, "t")
        count = fill_with_records(broker, "t")
        if reserve == "nothing reserved":
            (small_disk / "data" / "reserve").unlink()
        fill_to_the_last_block(small_disk / "ballast")
        start = count if offset == -1 else offset
        assert delete_records(broker, "t", offset) == (NONE, start)
        assert produce(broker, "t", VALUE) == (NONE, count)
        assert end_of(broker, "t", start) == count + 1
        broker.crash()
    with InProcessBroker(small_disk / "data", SETTINGS) as broker:
        assert fetch(broker, "t", 0)[0] == "OFFSET_OUT_OF_RANGE"
        assert end_of(broker, "t", start) == count + 1


@pytest.mark.parametrize("segments", ["many segments", "one segment"])
def test_retention_empties_a_full_disk(small_disk: Path, segments: str) -> None:
    settings = {**SETTINGS, "log.retention.check.interval.ms": "50"}
    if segments == "one segment":
        settings |= {"log.segment.bytes": "10000000"}
    with InProcessBroker(small_disk / "data", settings) as broker:
        create_topic(broker, "t")
        create_topic(broker, "other")
        count = fill_with_records(broker, "t")
        fill_to_the_last_block(small_disk / "ballast")
        # The broker must also store the config change.
        assert set_retention_ms(broker, "t", 1) == NONE
        assert produce(broker, "other", VALUE)[0] == KAFKA_STORAGE_ERROR
        broker.run_until(lambda: produce(broker, "other", VALUE)[0] == NONE, "retention freed nothing")
        assert produce(broker, "t", VALUE) == (NONE, count)


def test_deleting_a_topic_empties_a_full_disk(small_disk: Path) -> None:
    with InProcessBroker(small_disk / "data", SETTINGS) as broker:
        create_topic(broker, "t")
        create_topic(broker, "other")
        fill_with_records(broker, "t")
        fill_to_the_last_block(small_disk / "ballast")
        assert delete_topic(broker, "t") == NONE
        broker.run_until(lambda: produce(broker, "other", VALUE)[0] == NONE, "the deletion freed nothing")
        broker.crash()
    with InProcessBroker(small_disk / "data", SETTINGS) as broker:
        assert fetch(broker, "t", 0)[0] == "UNKNOWN_TOPIC_OR_PARTITION"
        assert end_of(broker, "other") == 1


def test_a_deleted_topic_frees_its_space_without_the_garbage_collector(small_disk: Path) -> None:
    def used_bytes() -> int:
        status = os.statvfs(small_disk)
        return (status.f_blocks - status.f_bfree) * status.f_frsize

    with InProcessBroker(small_disk / "data", SETTINGS) as broker:
        before = used_bytes()
        gc.disable()
        try:
            for name in ("a", "b", "c"):
                create_topic(broker, name)
                for number in range(15):
                    assert produce(broker, name, VALUE, acks=1 if number % 2 else -1) == (NONE, number)
                assert end_of(broker, name) == 15
                assert delete_topic(broker, name) == NONE
                broker.run_until(lambda: used_bytes() < before + 500_000, "the space of the topic is not free")
        finally:
            gc.enable()


@pytest.mark.parametrize("end", ["stopped", "killed"])
@pytest.mark.parametrize("reserve", ["reserved", "nothing reserved"])
def test_a_broker_stops_and_starts_on_a_full_disk_and_serves_its_records(
    small_disk: Path, caplog: pytest.LogCaptureFixture, end: str, reserve: str
) -> None:
    data, ballast = small_disk / "data", small_disk / "ballast"
    with InProcessBroker(data, SETTINGS) as broker:
        create_topic(broker, "t")
        ballast.write_bytes(bytes(2_000_000))
        count = fill_with_records(broker, "t")
        if reserve == "nothing reserved":
            (data / "reserve").unlink()
        fill_to_the_last_block(ballast)
        if end == "killed":
            broker.crash()
    # Simulate a reboot. The broker writes more files when it starts after a reboot.
    (data / "boot-id").unlink(missing_ok=True)
    fill_to_the_last_block(ballast)
    with caplog.at_level(logging.ERROR), InProcessBroker(data, SETTINGS) as broker:
        assert "read-only until there is space" in caplog.text
        assert end_of(broker, "t") == count
        cluster_id = broker.broker.cluster_id
        fill_to_the_last_block(ballast)
        assert produce(broker, "t", VALUE)[0] == KAFKA_STORAGE_ERROR
        assert delete_records(broker, "t", 1)[0] in (NONE, KAFKA_STORAGE_ERROR)
        ballast.unlink()
        assert produce(broker, "t", VALUE) == (NONE, count)
        broker.crash()
    with InProcessBroker(data, SETTINGS) as broker:
        assert broker.broker.cluster_id == cluster_id
        assert end_of(broker, "t", 1) == count + 1
