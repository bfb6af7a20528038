"""Unsupported features: the client gets an error, and the log states the reason."""

import logging
from pathlib import Path

import pytest

from headgate.broker.node.unsupported_features import Feature, UnsupportedFeatures, log_interval_ms
from tests.faults.in_process import InProcessBroker
from tests.manual_clock import ManualClock

LOGGER = "headgate.broker.unsupported"


def test_each_feature_is_logged_once_per_interval(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    unsupported = UnsupportedFeatures(clock)
    for _ in range(100):
        unsupported.report(Feature.TRANSACTIONS, "producer 'a'")
        unsupported.report(Feature.COMPACTION, "topic t")
    assert len(caplog.records) == 2
    clock.advance(log_interval_ms)
    unsupported.report(Feature.TRANSACTIONS, "producer 'b'")
    assert caplog.messages[2] == (
        "producer 'b' uses transactions, which this broker does not support yet: remove transactional.id"
    )


def test_a_transactional_producer_is_refused_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with InProcessBroker(tmp_path) as running:
        answer = running.ask("init_producer_id", 4, {"transactional_id": "pay", "transaction_timeout": 1000})
    assert answer["error_code"] == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    assert "producer 'pay' uses transactions" in caplog.text


def test_a_consumer_of_the_new_group_protocol_is_refused_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with InProcessBroker(tmp_path) as running:
        body = {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]}
        answer = running.ask("consumer_group_heartbeat", 1, body)
    assert answer["error_code"] == "UNSUPPORTED_VERSION"
    assert "group.protocol=classic" in answer["error_message"]
    assert "group 'g' uses the consumer group protocol of KIP-848" in caplog.text


@pytest.mark.parametrize("is_new", [True, False])
def test_a_compacted_topic_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture, is_new: bool) -> None:
    caplog.set_level(logging.WARNING, LOGGER)
    policy = {"name": "cleanup.policy", "value": "compact"}
    with InProcessBroker(tmp_path) as running:
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 1, "configs": [policy] if is_new else []}
        running.ask("create_topics", 7, {"topics": [topic]})
        assert ("topic t has cleanup.policy=compact" in caplog.text) == is_new
        if not is_new:
            change = {"resource_type": 2, "resource_name": "t", "configs": [{**policy, "config_operation": 0}]}
            running.ask("incremental_alter_configs", 1, {"resources": [change]})
            assert "topic t has cleanup.policy=compact" in caplog.text


def test_the_offsets_topic_is_not_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with InProcessBroker(tmp_path) as running:
        topic = {"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}
        running.ask("create_topics", 7, {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}]})
        running.ask("offset_commit", 8, {"group_id": "g", "topics": [topic]})
    assert "compact" not in caplog.text
