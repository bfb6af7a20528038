"""The request guard checks the counts of a request before parsing. Valid requests of every version pass unchanged."""

import random
import struct

import pytest
from kio.index import load_request_schema

from headgate.broker.dispatch.handler_table import HANDLERS
from headgate.broker.protocol.entities import MalformedRequest, read_request
from headgate.broker.protocol.request_guard import REQUEST_ITEMS_MAX, ImpossibleCount, TooManyItems, guarded
from tests.hostile.broker.request_fuzzing import RequestFuzzer
from tests.wire.entities import encode_request
from tests.wire.raw_client import request_header

ADVERTISED = [(api_key, version) for api_key, handler in sorted(HANDLERS.items()) for version in handler.versions]


@pytest.mark.parametrize(("api_key", "version"), ADVERTISED)
def test_sound_requests_pass_unchanged(api_key: int, version: int) -> None:
    fuzzer = RequestFuzzer(random.Random(api_key * 100 + version))
    for _ in range(20):
        frame = fuzzer.sound_frame(api_key, version)
        assert guarded(api_key, version, frame) is frame


@pytest.mark.parametrize(("api_key", "version"), ADVERTISED)
def test_a_request_cut_off_anywhere_is_refused_before_or_while_it_is_read(api_key: int, version: int) -> None:
    frame = RequestFuzzer(random.Random(api_key)).sound_frame(api_key, version)
    start = len(request_header(api_key, version, 7, flexible=load_request_schema(api_key, version).__flexible__))
    for end in range(start, len(frame), max(len(frame) // 200, 1)):
        with pytest.raises((MalformedRequest, ValueError)):
            read_request(api_key, version, guarded(api_key, version, frame[:end]), start)


def test_unknown_tags_are_taken_out_wherever_they_are() -> None:
    plain = encode_request("metadata", 12, {"topics": [{"name": "a"}, {"name": "b"}]})
    topic = b"\x02a\x00"
    assert topic in plain
    tagged = plain.replace(topic, b"\x02a\x02\x05\x01!\x7f\x00")[:-1] + b"\x01\xe8\x07\x02??"
    header = request_header(3, 12, 7, flexible=True)
    odd_header = header[:-1] + b"\x01\x00\x01x"
    assert guarded(3, 12, odd_header + tagged) == header + plain


def test_known_tags_stay() -> None:
    body = {"cluster_id": "abc", "topics": []}
    frame = request_header(1, 12, 7, flexible=True) + encode_request("fetch", 12, body)
    with_unknown = frame.replace(b"\x01\x00\x04\x04abc", b"\x02\x00\x04\x04abc\x09\x01?")
    assert with_unknown != frame
    assert guarded(1, 12, with_unknown) == frame


@pytest.mark.parametrize("tags", [b"\xff\xff\xff\xff\x0f", b"\x01\x00", b"\x01\x00\x7f", b"\x02\x05\x00\x05\x00"])
def test_tags_that_lie_are_refused(tags: bytes) -> None:
    frame = request_header(18, 3, 7, flexible=True) + b"\x02a\x02b" + tags
    with pytest.raises(ValueError, match=r"tag|truncated"):
        guarded(18, 3, frame)


@pytest.mark.parametrize("count", [2, 1000, 2**31 - 1, -2, -(2**31)])
def test_counts_that_lie_are_refused(count: int) -> None:
    with pytest.raises(ImpossibleCount):
        guarded(3, 1, request_header(3, 1, 7, flexible=False) + struct.pack(">i", count))


def test_null_is_rejected_for_required_arrays_and_accepted_for_nullable_ones() -> None:
    nulled = request_header(2, 1, 7, flexible=False) + struct.pack(">ii", -1, -1)
    with pytest.raises(ImpossibleCount):
        guarded(2, 1, nulled)
    all_topics = request_header(3, 1, 7, flexible=False) + struct.pack(">i", -1)
    assert guarded(3, 1, all_topics) is all_topics


def test_as_many_items_as_may_be_are_let_through_and_not_one_more() -> None:
    for count, passes in ((REQUEST_ITEMS_MAX, True), (REQUEST_ITEMS_MAX + 1, False)):
        frame = request_header(3, 1, 7, flexible=False) + struct.pack(">i", count) + b"\x00\x01t" * count
        if passes:
            assert guarded(3, 1, frame) is frame
        else:
            with pytest.raises(TooManyItems):
                guarded(3, 1, frame)
