"""Malformed frames: the responses, and when the broker closes the connection."""

import struct

from tests.wire.entities import API_KEYS, Plain
from tests.wire.raw_client import ConnectionClosed, RawConnection, request_header
from tests.wire.record_batches import Batch, NewRecord
from tests.wire.transcript import Wire, fetch_body


def _send(wire: Wire, label: str, raw: bytes) -> None:
    connection = RawConnection(wire.address, seconds=3)
    try:
        connection.send_bytes(raw)
        answer = {"answered with bytes": len(connection.receive_frame()) > 0}
    except ConnectionClosed:
        answer = {"closed": True}
    except TimeoutError:
        answer = {"waits for more": True}
    finally:
        connection.close()
    wire.note("frame", 0, {}, answer, label)


def _frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def broken_frames(wire: Wire) -> None:
    header = request_header(API_KEYS["metadata"], 9, 1, flexible=True)
    produce = request_header(API_KEYS["produce"], 9, 1, flexible=True)
    _send(wire, "a negative length", struct.pack(">i", -1))
    _send(wire, "a length of zero", struct.pack(">i", 0))
    _send(wire, "a length past the limit", struct.pack(">i", 0x7FFFFFFF))
    _send(wire, "a length just past socket.request.max.bytes", struct.pack(">i", 104857601))
    _send(wire, "half a header", _frame(header[:6]))
    _send(wire, "an unknown api key", _frame(request_header(999, 0, 1, flexible=False)))
    _send(wire, "a negative api key", _frame(request_header(-1, 0, 1, flexible=False)))
    _send(wire, "a version that is too new", _frame(request_header(API_KEYS["metadata"], 99, 1, flexible=True)))
    _send(wire, "a negative version", _frame(request_header(API_KEYS["metadata"], -1, 1, flexible=False)))
    _send(wire, "a version that is no more", _frame(request_header(API_KEYS["fetch"], 0, 1, flexible=False)))
    _send(wire, "a body that is cut short", _frame(header + b"\x05"))
    _send(wire, "no body", _frame(header))
    _send(wire, "an array longer than the frame", _frame(header + b"\xff\xff\xff\xff\x07"))
    _send(wire, "a produce body of garbage", _frame(produce + b"\xff" * 50))
    _send(wire, "HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    _send(wire, "TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64)
    _send(wire, "an API for controllers", _frame(request_header(API_KEYS["vote"], 0, 1, flexible=True) + b"\x00" * 8))
    _send(wire, "a response key nobody sends any more", _frame(request_header(4, 0, 1, flexible=False)))


def requests_in_a_row_are_answered_in_order(wire: Wire) -> None:
    connection = wire.connect()
    for _ in range(20):
        connection.send("metadata", 9, {"topics": [], "allow_auto_topic_creation": False})
        connection.send("api_versions", 3, {"client_software_name": "a", "client_software_version": "1"})
    answered = 0
    for _ in range(40):
        connection.receive()
        answered += 1
    wire.note("metadata", 9, {}, {"answered in order": answered}, "forty requests before the first answer is read")


def a_frame_in_pieces(wire: Wire) -> None:
    connection = wire.connect()
    header = request_header(API_KEYS["metadata"], 9, 77, flexible=True)
    raw = _frame(header + b"\x01\x00\x00\x00\x00")
    for i in range(len(raw)):
        connection.send_bytes(raw[i : i + 1])
    frame = connection.receive_frame()
    wire.note("metadata", 9, {}, {"correlation_id": struct.unpack_from(">i", frame)[0]}, "sent byte by byte")


def bytes_after_the_body(wire: Wire) -> None:
    connection = RawConnection(wire.address, seconds=3)
    header = request_header(API_KEYS["metadata"], 9, 5, flexible=True)
    connection.send_frame(header + b"\x01\x00\x00\x00\x00" + b"surplus")
    try:
        answer = {"correlation_id": struct.unpack_from(">i", connection.receive_frame())[0]}
    except ConnectionClosed:
        answer = {"closed": True}
    connection.close()
    wire.note("metadata", 9, {}, answer, "a body with bytes to spare")


def a_request_behind_a_waiting_one_waits_too(wire: Wire) -> None:
    topic = wire.topic("waiting")
    connection = wire.connect()
    connection.send("fetch", 11, fetch_body(topic, 0, max_wait=15_000, min_bytes=1))
    connection.send("api_versions", 0, {})
    connection.send("metadata", 9, {"topics": [], "allow_auto_topic_creation": False})
    wire.produce(topic, Batch([NewRecord(b"news")]))
    # The client matches responses by order only, so a response out of order would be decoded as another API.
    fetched = connection.receive()
    values = [record["value"] for batch in _batches(fetched) for record in batch["records"]]
    wire.note("fetch", 11, {}, {"values": values}, "answered first")
    wire.note("api_versions", 0, {}, {"error_code": connection.receive()["error_code"]}, "then this")
    wire.note("metadata", 9, {}, {"topics": connection.receive()["topics"]}, "then that")


def _batches(answer: Plain) -> list[Plain]:
    batches: list[Plain] = answer["responses"][0]["partitions"][0]["records"]
    return batches
