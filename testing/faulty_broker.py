"""`python -m headgate.testing.faulty_broker FAULTS [OPTIONS]`: the broker, with the faults of a file (`faults`)."""

import errno
import json
import os
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kio.schema.errors import ErrorCode

from headgate.broker import __main__, engine
from headgate.broker.log import files as log_files
from headgate.broker.protocol.entities import read_request, response_header_is_flexible, response_writer

_PREFIX = struct.Struct(">hhi")
_SIZE_AND_CORRELATION = struct.Struct(">ii")

files: Any = log_files
"""Its imported functions are replaced."""


class Faults:
    """The content of the file. Reads it again after a change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version = (0, 0)
        self._faults: dict[str, Any] = {}
        self._used: dict[int, int] = {}
        """How many requests each fault has failed, by its number."""

    def _current(self) -> dict[str, Any]:
        stat = os.stat(self._path)
        # The file is replaced as a whole, so each change has another inode.
        version = (stat.st_mtime_ns, stat.st_ino)
        if version != self._version:
            self._faults, self._version = json.loads(self._path.read_text()), version
        return self._faults

    @property
    def is_disk_full(self) -> bool:
        return bool(self._current()["disk_full"])

    @property
    def fsync_seconds(self) -> float:
        return float(self._current()["fsync_seconds"])

    def error_of(self, api_key: int) -> ErrorCode | None:
        """The error code of the next request. Counts the request."""
        for fault in self._current()["requests"]:
            used = self._used.get(fault["number"], 0)
            if fault["api_key"] == api_key and used < fault["count"]:
                self._used[fault["number"]] = used + 1
                return ErrorCode[fault["error"]]
        return None


def error_answer(api_key: int, request: Any, error: ErrorCode) -> dict[str, Any]:
    """The response that reports `error` for everything in the request."""
    code = {"error_code": error}
    match api_key:
        case 0:
            topics = [
                (topic, [{"index": one.index, "base_offset": -1, **code} for one in topic.partition_data])
                for topic in request.topic_data
            ]
            return {"responses": [{**_names(topic), "partition_responses": parts} for topic, parts in topics]}
        case 1:
            fetched = [
                (topic, [{"partition_index": one.partition, "high_watermark": -1, **code} for one in topic.partitions])
                for topic in request.topics
            ]
            return {"responses": [{**_names(topic), "partitions": parts} for topic, parts in fetched]}
        case 2 | 8:
            listed = [
                (topic, [{"partition_index": one.partition_index, **code} for one in topic.partitions])
                for topic in request.topics
            ]
            return {"topics": [{**_names(topic), "partitions": parts} for topic, parts in listed]}
        case 19:
            return {"topics": [{"name": topic.name, **code} for topic in request.topics]}
    return code


def _names(topic: Any) -> dict[str, Any]:
    """Name and id of a topic. Each version of an API has one of them."""
    names = {name: getattr(topic, name) for name in ("name", "topic", "topic_id") if hasattr(topic, name)}
    return {name: value for name, value in names.items() if value is not None}


def install(faults: Faults) -> None:
    """Replace the functions that write, sync and execute requests."""
    execute, write_at, sync_file = engine.Engine.execute, files.write_at, files.sync_file

    def faulty_execute(self: engine.Engine, frame: memoryview, client_host: str, connection_id: int) -> Any:
        if len(frame) >= _PREFIX.size:
            api_key, version, correlation_id = _PREFIX.unpack_from(frame)
            error = faults.error_of(api_key)
            if error is not None:
                return _failed(self, frame, api_key, version, correlation_id, error)
        return execute(self, frame, client_host, connection_id)

    def faulty_write(*arguments: Any) -> Any:
        if faults.is_disk_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_at(*arguments)

    def faulty_sync(*arguments: Any) -> Any:
        time.sleep(faults.fsync_seconds)
        return sync_file(*arguments)

    replacements: list[tuple[Any, str, Callable[..., Any]]] = [
        (engine.Engine, "execute", faulty_execute),
        (files, "write_at", faulty_write),
        (files, "sync_file", faulty_sync),
    ]
    for owner, name, replacement in replacements:
        setattr(owner, name, replacement)


def _failed(
    broker: engine.Engine, frame: memoryview, api_key: int, version: int, correlation_id: int, error: ErrorCode
) -> bytes:
    route = broker._find_route(api_key, version)
    assert route is not None
    copied = memoryview(bytes(frame))
    _, position = route.read_header(copied, 0)
    body = response_writer(api_key, version)(
        error_answer(api_key, read_request(api_key, version, copied, position), error)
    )
    tail = b"\x00" if response_header_is_flexible(api_key, version) else b""
    return _SIZE_AND_CORRELATION.pack(4 + len(tail) + len(body), correlation_id) + tail + body


if __name__ == "__main__":
    install(Faults(Path(sys.argv.pop(1))))
    sys.exit(__main__.main())
