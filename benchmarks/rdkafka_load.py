"""Load through librdkafka without a Python object per record, to keep the client's cost out of the measurement.

confluent-kafka's Consumer spends four fifths of its time on creating one object per record. Its Producer needs one
call per record. This cost hides the difference between two brokers. This module calls the bundled C library directly.
It produces ten thousand records per call and consumes them with a callback that is a C function.

A consumer then mostly frees memory in one thread that another thread allocated. With glibc's allocator the two threads
contend for locks, and a faster broker makes this worse. Clients therefore use jemalloc if it is installed.
"""

import ctypes
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from ctypes.util import find_library
from pathlib import Path
from unittest.mock import patch

import confluent_kafka

RECORDS_EACH_CALL = 10_000
DONE_WITHIN_S = 120

_ERROR_BYTES = 512
_PRODUCER, _CONSUMER = 0, 1
_CONF_OK = 0
_COPY, _BLOCK, _PARTITION = 0x2, 0x4, 0x8  # RD_KAFKA_MSG_F_*


class _Message(ctypes.Structure):
    """rd_kafka_message_t"""

    _fields_ = (
        ("error", c_int),
        ("topic", c_void_p),
        ("partition", c_int32),
        ("payload", c_char_p),
        ("length", c_size_t),
        ("key", c_void_p),
        ("key_length", c_size_t),
        ("offset", c_int64),
        ("private", c_void_p),
    )


_SIGNATURES: Mapping[str, tuple[object, ...]] = {
    # name: result, arguments
    "rd_kafka_conf_new": (c_void_p,),
    "rd_kafka_conf_set": (c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t),
    "rd_kafka_new": (c_void_p, c_int, c_void_p, c_char_p, c_size_t),
    "rd_kafka_destroy": (None, c_void_p),
    "rd_kafka_topic_new": (c_void_p, c_void_p, c_char_p, c_void_p),
    "rd_kafka_topic_destroy": (None, c_void_p),
    "rd_kafka_produce_batch": (c_int, c_void_p, c_int32, c_int, POINTER(_Message), c_int),
    "rd_kafka_flush": (c_int, c_void_p, c_int),
    "rd_kafka_outq_len": (c_int, c_void_p),
    "rd_kafka_topic_partition_list_new": (c_void_p, c_int),
    "rd_kafka_topic_partition_list_destroy": (None, c_void_p),
    "rd_kafka_topic_partition_list_add": (c_void_p, c_void_p, c_char_p, c_int32),
    "rd_kafka_topic_partition_list_set_offset": (c_int, c_void_p, c_char_p, c_int32, c_int64),
    "rd_kafka_poll_set_consumer": (c_int, c_void_p),
    "rd_kafka_assign": (c_int, c_void_p, c_void_p),
    "rd_kafka_queue_get_consumer": (c_void_p, c_void_p),
    "rd_kafka_queue_destroy": (None, c_void_p),
    "rd_kafka_consume_callback_queue": (c_int, c_void_p, c_int, c_void_p, c_void_p),
    "rd_kafka_consumer_close": (c_int, c_void_p),
}


def _library() -> ctypes.CDLL:
    """Load the librdkafka of confluent-kafka's wheel."""
    libraries = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(libraries.glob("librdkafka-*"))))
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


@contextmanager
def allocator() -> Iterator[str]:
    """Set the allocator of processes that start inside the block. Yields its name."""
    jemalloc = find_library("jemalloc")
    if jemalloc is None:
        yield "glibc"
        return
    with patch.dict(os.environ, LD_PRELOAD=jemalloc):
        yield "jemalloc"


@contextmanager
def _client(library: ctypes.CDLL, kind: int, settings: Mapping[str, str]) -> Iterator[int]:
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    configuration = library.rd_kafka_conf_new()
    for name, value in settings.items():
        done = library.rd_kafka_conf_set(configuration, name.encode(), value.encode(), error, _ERROR_BYTES)
        assert done == _CONF_OK, error.value
    client: int | None = library.rd_kafka_new(kind, configuration, error, _ERROR_BYTES)
    assert client, error.value
    try:
        yield client
    finally:
        library.rd_kafka_destroy(client)


def produce(address: str, topic: str, values: Sequence[bytes], records: int, codec: str, partitions: int) -> None:
    """Produce `records` records. Cycles through `values` and through the partitions."""
    library = _library()
    settings = {
        "bootstrap.servers": address,
        "acks": "1",
        "linger.ms": "5",
        "compression.type": codec,
        "queue.buffering.max.messages": "2000000",
        "queue.buffering.max.kbytes": "1048576",
    }
    each = min(RECORDS_EACH_CALL, records)
    messages = (_Message * each)()
    for number, message in enumerate(messages):
        message.payload = values[number % len(values)]
        message.length = len(values[number % len(values)])
        message.partition = number % partitions
    with _client(library, _PRODUCER, settings) as client:
        handle = library.rd_kafka_topic_new(client, topic.encode(), None)
        for start in range(0, records, each):
            wanted = min(each, records - start)
            taken = library.rd_kafka_produce_batch(handle, 0, _COPY | _BLOCK | _PARTITION, messages, wanted)
            assert taken == wanted, f"librdkafka took {taken} of {wanted} records"
        library.rd_kafka_flush(client, DONE_WITHIN_S * 1000)
        left = library.rd_kafka_outq_len(client)
        library.rd_kafka_topic_destroy(handle)
    assert left == 0, f"{left} records were not delivered"


def consume(address: str, topic: str, records: int, partitions: int) -> None:
    """Consume `records` records from the beginning of all partitions."""
    library = _library()
    settings = {
        "bootstrap.servers": address,
        "group.id": "bench",
        "enable.auto.commit": "false",
        # By default, librdkafka pauses fetching for a second when its queue is full, and the pause dominates the time.
        # A full queue lasts for tens of milliseconds. A backoff of 1 ms would cost time, more so with a fast broker.
        # The queue limits stay at their defaults. Without limits, memory growth would dominate the time.
        "fetch.queue.backoff.ms": "10",
    }
    with _client(library, _CONSUMER, settings) as client:
        library.rd_kafka_poll_set_consumer(client)
        wanted = library.rd_kafka_topic_partition_list_new(partitions)
        for partition in range(partitions):
            library.rd_kafka_topic_partition_list_add(wanted, topic.encode(), partition)
            library.rd_kafka_topic_partition_list_set_offset(wanted, topic.encode(), partition, 0)
        assert library.rd_kafka_assign(client, wanted) == 0
        library.rd_kafka_topic_partition_list_destroy(wanted)
        queue = library.rd_kafka_queue_get_consumer(client)
        # rd_kafka_message_status only reads a field of each message.
        callback = ctypes.cast(library.rd_kafka_message_status, c_void_p)
        seen = 0
        deadline = time.monotonic() + DONE_WITHIN_S
        while seen < records:
            seen += library.rd_kafka_consume_callback_queue(queue, 1000, callback, None)
            assert time.monotonic() < deadline, f"{seen} of {records} records came"
        library.rd_kafka_queue_destroy(queue)
        library.rd_kafka_consumer_close(client)
