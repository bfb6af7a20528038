"""The head of a response is sent together with its body, unless the response is a stream."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

from headgate.web.http_protocol import _ResponseTransport


def writes(is_chunked: bool | None, *parts: bytes) -> list[bytes]:
    sent = Mock()
    cycle: Any = SimpleNamespace(transport=sent, chunked_encoding=None)
    transport = _ResponseTransport(cycle)
    transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    cycle.chunked_encoding = is_chunked
    for part in parts:
        transport.write(part)
    return [call.args[0] for call in sent.write.call_args_list[1:]]


def test_head_and_body_of_a_response_with_a_length_are_one_write() -> None:
    assert writes(False, b"head", b"body") == [b"headbody"]
    assert writes(False, b"head", b"", b"rest") == [b"head", b"rest"]


def test_the_head_of_a_stream_or_of_a_response_without_body_is_sent_at_once() -> None:
    assert writes(True, b"head") == [b"head"]
    assert writes(None, b"head") == [b"head"]
