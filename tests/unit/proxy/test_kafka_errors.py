"""Kafka error codes as errors of the proxy."""

import pytest
from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import broker_error, check
from headgate.proxy.api.errors import ERROR_TABLE, status_of
from headgate.proxy.kafka_errors import proxy_error


@pytest.mark.parametrize("code", [code for code in ErrorCode if code is not ErrorCode.none], ids=lambda code: code.name)
def test_every_code_has_an_entry_in_the_error_table(code: ErrorCode) -> None:
    error = proxy_error(broker_error(code, None, "topic orders"))
    assert any(kind in ERROR_TABLE for kind in type(error).__mro__)
    assert str(error)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.unknown_topic_or_partition, 40401),
        (ErrorCode.topic_already_exists, 40002),
        (ErrorCode.security_disabled, 40002),
        (ErrorCode.topic_authorization_failed, 40301),
        (ErrorCode.group_id_not_found, 40405),
        (ErrorCode.non_empty_group, 40903),
        (ErrorCode.leader_not_available, 40404),
        (ErrorCode.not_coordinator, 50003),
        (ErrorCode.request_timed_out, 50003),
        (ErrorCode.unknown_server_error, 50002),
    ],
)
def test_error_codes_are_those_of_confluent(code: ErrorCode, expected: int) -> None:
    assert status_of(broker_error(code, "why", "what")).error_code == expected


def test_the_code_none_raises_nothing() -> None:
    check(ErrorCode.none, None, "topic orders")
