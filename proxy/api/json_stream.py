"""Incremental parser for concatenated JSON objects with any white space between them.

Common case: one object per line, which needs one call of the JSON parser. Otherwise the splitter counts braces and
brackets outside of strings to find the end of an object. The size of an object is limited, so that the buffer is too.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from headgate.proxy.api.request_body import may_lose_digits, parse_json
from headgate.proxy.errors import BadRequest

_MARKS: Final = re.compile(rb'["{}\[\]\\]')
_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_OPENING, _CLOSING = frozenset(b"{["), frozenset(b"}]")
_BLANK: Final = b" \t\r\n"


class JsonSplitter:
    """Splits bytes into JSON objects. Other values between them are errors."""

    def __init__(self, document_bytes_max: int) -> None:
        self._max = document_bytes_max
        self._buffer = bytearray()
        """The start of an incomplete document."""
        self._scanned = 0
        self._depth = 0
        self._in_string = False

    def feed(self, chunk: bytes) -> Iterator[tuple[Any, int]]:
        """The documents that end in `chunk`, with their sizes. Raises BadRequest."""
        data = chunk
        if self._buffer:
            # Scan only the new bytes, so that a document in many small chunks does not cost quadratic time.
            self._buffer += chunk
            end = self._scan(self._buffer, 0)
            if end < 0:
                self._check(len(self._buffer))
                return
            document, data = bytes(self._buffer[:end]), bytes(self._buffer[end:]).lstrip(_BLANK)
            self._buffer.clear()
            self._scanned = 0
            yield parse_json(document), end
        start = 0
        loads = orjson.loads
        by_line = not may_lose_digits(data)
        while True:
            if by_line and self._scanned == 0:
                # Parse whole lines while each is a document. At the first other line, switch to the scan.
                while data[start : start + 1] == b"{":
                    end = data.find(b"\n", start)
                    if end < 0:
                        break
                    try:
                        value = loads(data[start:end])
                    except orjson.JSONDecodeError:
                        by_line = False
                        break
                    yield value, end - start
                    start = end + 1
            end = self._scan(data, start)
            if end < 0:
                break
            document = data[start:end].strip(_BLANK)
            yield parse_json(document), len(document)
            start = end
            self._scanned = 0
            if by_line and data[start : start + 1] == b"\n":
                start += 1
        left = data[start:].lstrip(_BLANK)
        if left and self._depth == 0:
            raise BadRequest("The stream must contain JSON objects only.")
        self._check(len(left))
        self._scanned = max(self._scanned - (len(data) - start - len(left)), 0)
        self._buffer += left

    def _check(self, size: int) -> None:
        if size > self._max:
            raise BadRequest(f"A record in the stream is larger than the limit of {self._max} bytes.")

    def _scan(self, data: bytes | bytearray, start: int) -> int:
        """The end of the document that starts at `start`, or -1 if it is incomplete."""
        position = start + self._scanned
        while True:
            match = _MARKS.search(data, position)
            if match is None:
                position = len(data)
                break
            mark = data[match.start()]
            position = match.end()
            if self._in_string:
                if mark == _BACKSLASH:
                    if position == len(data):
                        # The escaped byte is in the next chunk. Scan the backslash again then.
                        position -= 1
                        break
                    position += 1
                elif mark == _QUOTE:
                    self._in_string = False
            elif mark == _QUOTE:
                if self._depth == 0:
                    raise BadRequest("The stream must contain JSON objects only.")
                self._in_string = True
            elif mark in _OPENING:
                self._depth += 1
            elif mark in _CLOSING:
                self._depth -= 1
                if self._depth < 0:
                    raise BadRequest("The stream is not valid JSON: unexpected closing bracket.")
                if self._depth == 0:
                    return position
        self._scanned = position - start
        return -1

    def end(self) -> None:
        """The stream is complete. Raises BadRequest if a document is incomplete."""
        if self._buffer:
            raise BadRequest("The stream ends inside a JSON object.")
