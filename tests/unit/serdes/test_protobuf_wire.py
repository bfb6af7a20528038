"""The reason why a Protobuf message cannot be parsed."""

import pytest

from headgate.serdes.outcome import Reason
from headgate.serdes.protobuf.messages import Messages
from headgate.serdes.protobuf.wire import DEPTH_MAX, explain

PROTO = """
syntax = "proto3";
message Tree {
  string name = 1;
  int64 number = 2;
  fixed64 wide = 3;
  fixed32 narrow = 4;
  Tree child = 5;
  bytes raw = 6;
}
"""
VALID = "the Protobuf library cannot read the message"


def nested(levels: int) -> bytes:
    body = b""
    for _ in range(levels):
        size, length = len(body), b""
        while size >= 0x80:
            length += bytes([size & 0x7F | 0x80])
            size >>= 7
        body = b"\x2a" + length + bytes([size]) + body
    return body


@pytest.mark.parametrize(
    ("data", "reason", "detail", "path"),
    [
        (b"", Reason.CORRUPT, VALID, ""),
        (b"\x0a\x02ab", Reason.CORRUPT, VALID, ""),
        (b"\x0a\x03ab", Reason.TRUNCATED, "3 bytes", ".name"),
        (b"\x0a\x02\xff\xfe", Reason.CORRUPT, "invalid UTF-8", ".name"),
        (b"\x32\x02\xff\xfe", Reason.CORRUPT, VALID, ""),
        (b"\x10\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Reason.CORRUPT, VALID, ""),
        (b"\x10" + b"\xff" * 10 + b"\x01", Reason.CORRUPT, "more than 64 bits", ".number"),
        (b"\x10\x80", Reason.TRUNCATED, "a number", ".number"),
        (b"\x10", Reason.TRUNCATED, "a number", ".number"),
        (b"\x19" + bytes(8), Reason.CORRUPT, VALID, ""),
        (b"\x19" + bytes(7), Reason.TRUNCATED, "8 bytes", ".wide"),
        (b"\x25" + bytes(4), Reason.CORRUPT, VALID, ""),
        (b"\x25" + bytes(3), Reason.TRUNCATED, "4 bytes", ".narrow"),
        (b"\x25" + bytes(5), Reason.CORRUPT, "field number 0", ""),
        (b"\x2a\x04\x0a\x02ab", Reason.CORRUPT, VALID, ""),
        (b"\x2a\x04\x0a\x03ab", Reason.TRUNCATED, "3 bytes", ".child.name"),
        (b"\x2a\x05\x0a\x02ab", Reason.TRUNCATED, "5 bytes", ".child"),
        (b"\x07", Reason.CORRUPT, "field number 0", ""),
        (b"\x0f", Reason.CORRUPT, "wire type 7", ".name"),
        # An unknown field: a number, a string, a group with a field, an end without a beginning.
        (b"\x78\x01", Reason.CORRUPT, VALID, ""),
        (b"\x7a\x02\xff\xfe", Reason.CORRUPT, VALID, ""),
        (b"\x7b\x78\x01\x7c", Reason.CORRUPT, VALID, ""),
        (b"\x7b\x78\x01", Reason.TRUNCATED, "a group", ".15"),
        (b"\x7b\x74", Reason.CORRUPT, "wire type 4", ".15.14"),
        (b"\x7c", Reason.CORRUPT, "wire type 4", ".15"),
        (b"\x2b\x0a\x02\xff\xfe\x2c", Reason.CORRUPT, "invalid UTF-8", ".child.name"),
        (b"\xf8\xff\xff\xff\x0f\x01", Reason.CORRUPT, VALID, ""),
        (b"\x80\x80\x80\x80\x10\x01", Reason.CORRUPT, "field number 536870912", ""),
        (nested(DEPTH_MAX), Reason.CORRUPT, VALID, ""),
        (nested(DEPTH_MAX + 1), Reason.TOO_DEEP, "100 messages deep", ".child" * (DEPTH_MAX + 1)),
        (b"\x7b" * (DEPTH_MAX + 1), Reason.TOO_DEEP, "100 messages deep", ".15" * (DEPTH_MAX + 1)),
    ],
)
def test_the_first_error_is_explained_with_its_field(data: bytes, reason: Reason, detail: str, path: str) -> None:
    fault = explain(Messages(PROTO, {}).first(), data)
    assert fault.reason is reason
    assert detail in str(fault)
    assert "".join(reversed(fault.path)) == path
