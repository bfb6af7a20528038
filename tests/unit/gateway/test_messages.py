import io

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from broker.protocol.entities import entity_builder
from gateway.kafka.errors import ApiMissing
from gateway.kafka.messages import Api, KioRequest


def test_the_newest_version_that_both_sides_know_is_used() -> None:
    request = KioRequest(Api.METADATA, {"topics": None})
    assert request.prepare({Api.METADATA: (0, 5)}).version == 5
    assert request.prepare({Api.METADATA: (0, 99)}).version == max(range(14))


def test_an_api_that_is_not_offered_is_named() -> None:
    with pytest.raises(ApiMissing, match="DescribeLogDirs"):
        KioRequest(Api.DESCRIBE_LOG_DIRS, {}).prepare({})
    with pytest.raises(ApiMissing, match="OffsetFetch in version 7 or older"):
        KioRequest(Api.OFFSET_FETCH, {}).prepare({Api.OFFSET_FETCH: (8, 10)})


@pytest.mark.parametrize("version", [1, 8, 9, 12])
def test_requests_are_written_in_the_version_asked(version: int) -> None:
    message = KioRequest(Api.METADATA, {"topics": [{"name": "a"}], "allow_auto_topic_creation": False}).prepare(
        {Api.METADATA: (version, version)}
    )
    read, size = entity_reader(load_request_schema(3, version))(message.encode(), 0)
    assert size == len(message.encode())
    assert read.topics[0].name == "a"  # type: ignore[union-attr]  # of a version chosen at run time
    header = message.build_request_header(7, "c").encode()
    assert header[:8] == bytes([0, 3, 0, version, 0, 0, 0, 7])
    assert header.endswith(b"\x00") == (version >= 9)


@pytest.mark.parametrize("version", [1, 12])
def test_answers_are_read_behind_their_header(version: int) -> None:
    message = KioRequest(Api.METADATA, {"topics": None}).prepare({Api.METADATA: (version, version)})
    schema = load_response_schema(3, version)
    body = io.BytesIO()
    answer = {"brokers": [{"node_id": 4, "host": "h", "port": 1}], "controller_id": 4}
    entity_writer(schema)(body, entity_builder(schema)(answer))  # type: ignore[arg-type]  # built from this schema
    frame = io.BytesIO(bytes([0, 0, 0, 7]) + (b"\x00" if version >= 9 else b"") + body.getvalue())
    assert message.parse_response_header(frame).correlation_id == 7
    assert message.RESPONSE_TYPE.decode(frame).brokers[0].host == "h"
