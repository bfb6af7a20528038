"""The frame, byte by byte."""

from uuid import UUID

import pytest

from headgate.serdes.avro.binary import Fault
from headgate.serdes.framing import (
    KEY_HEADER,
    VALUE_HEADER,
    Frame,
    frame,
    guid_header,
    message_path,
    read_message_path,
    unframe,
    unframe_record,
)
from headgate.serdes.outcome import Poison, Reason

GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")


def reason(outcome: Frame | Poison) -> Reason | None:
    return outcome.reason if isinstance(outcome, Poison) else None


def test_the_id_is_four_bytes_big_endian_after_a_zero() -> None:
    assert frame(258, b"body") == b"\x00\x00\x00\x01\x02body"
    assert unframe(b"\x00\x00\x00\x01\x02body") == Frame(258, None, b"body")
    assert unframe(b"\x00\xff\xff\xff\xff") == Frame(0xFFFFFFFF, None, b"")


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (None, Reason.NULL),
        (b"", Reason.TOO_SHORT),
        (b"\x00\x00\x00\x01", Reason.TOO_SHORT),
        (b"\x01\x00", Reason.TOO_SHORT),
        (b"\x01\x00\x00\x00\x01", Reason.BAD_MAGIC),
        (b"{}{}{}", Reason.BAD_MAGIC),
    ],
)
def test_an_invalid_frame_has_a_reason(payload: bytes | None, expected: Reason) -> None:
    assert reason(unframe(payload)) == expected


def test_the_header_has_precedence_over_the_payload() -> None:
    header = guid_header(GUID)
    assert header == b"\x01" + bytes.fromhex("00112233445566778899aabbccddeeff")
    assert unframe_record(b"body", [("x", b""), (VALUE_HEADER, header)], False) == Frame(None, GUID, b"body", b"")
    assert unframe_record(b"body", [(KEY_HEADER, header)], True) == Frame(None, GUID, b"body", b"")
    assert unframe_record(b"body", {VALUE_HEADER: header}, False) == Frame(None, GUID, b"body", b"")
    assert unframe_record(b"\x00\x00\x00\x00\x01", None, False) == Frame(1, None, b"")
    assert reason(unframe_record(b"body-", [(KEY_HEADER, header)], False)) == Reason.BAD_MAGIC


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"", Reason.TOO_SHORT),
        (b"\x01" * 16, Reason.TOO_SHORT),
        (b"\x00\x00", Reason.TOO_SHORT),
        (b"\x02" * 17, Reason.BAD_MAGIC),
        (b"\x00\x00\x00\x00\x05", None),
    ],
)
def test_an_invalid_header_has_a_reason(header: bytes, expected: Reason | None) -> None:
    assert reason(unframe_record(b"body", [(VALUE_HEADER, header)], False)) == expected


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ((0,), b"\x00"),
        ((1,), b"\x02\x02"),
        ((1, 0), b"\x04\x02\x00"),
        ((0, 0), b"\x04\x00\x00"),
        ((70,), b"\x02\x8c\x01"),
    ],
)
def test_a_message_path_is_zigzag_with_the_first_message_in_one_byte(path: tuple[int, ...], written: bytes) -> None:
    assert message_path(path) == written
    assert read_message_path(written + b"rest") == (path, len(written))


def test_the_long_form_of_the_first_message_is_read_too() -> None:
    assert read_message_path(b"\x02\x00") == ((0,), 2)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", Reason.TRUNCATED),
        (b"\x02", Reason.TRUNCATED),
        (b"\x01", Reason.CORRUPT),
        (b"\x02\x01", Reason.CORRUPT),
        (b"\xfe\xff\xff\xff\x0f", Reason.CORRUPT),
    ],
)
def test_an_invalid_path_is_corrupt(data: bytes, expected: Reason) -> None:
    with pytest.raises(Fault) as caught:
        read_message_path(data)
    assert caught.value.reason == expected
