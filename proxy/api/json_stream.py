"""JSON values one after the other, with any white space between: cut apart, and parsed, as the bytes arrive.

A value on a line of its own is the common case and costs one attempt to parse it. What spans lines, or shares one, is
cut where braces and brackets outside of strings close. A value may be no larger than the limit: a stream without
end costs bounded memory.
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
    """Feed bytes, get whole documents. Only objects are cut; anything else between them is a fault."""

    def __init__(self, document_bytes_max: int) -> None:
        self._max = document_bytes_max
        self._buffer = bytearray()
        """A document whose end is not here yet."""
        self._scanned = 0
        self._depth = 0
        self._in_string = False

    def feed(self, chunk: bytes) -> Iterator[tuple[Any, int]]:
        """The documents that end in `chunk`, with their sizes. Raises BadRequest."""
        data = chunk
        if self._buffer:
            # Only what is new is looked at: a document that drips in costs no more than one that comes whole.
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
                # Whole lines, as long as each is a document; the first that is not leaves the rest to the scan.
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
            raise BadRequest("The stream must hold JSON objects, one after the other.")
        self._check(len(left))
        self._scanned = max(self._scanned - (len(data) - start - len(left)), 0)
        self._buffer += left

    def _check(self, size: int) -> None:
        if size > self._max:
            raise BadRequest(f"A record in the stream is over the limit of {self._max} bytes.")

    def _scan(self, data: bytes | bytearray, start: int) -> int:
        """Where the document ends that begins at `start`; -1 when the rest of it is not here yet."""
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
                        # The escaped byte is not here yet: look at the backslash again when it is.
                        position -= 1
                        break
                    position += 1
                elif mark == _QUOTE:
                    self._in_string = False
            elif mark == _QUOTE:
                if self._depth == 0:
                    raise BadRequest("The stream must hold JSON objects, one after the other.")
                self._in_string = True
            elif mark in _OPENING:
                self._depth += 1
            elif mark in _CLOSING:
                self._depth -= 1
                if self._depth < 0:
                    raise BadRequest("The stream is not JSON: a bracket closes that none opened.")
                if self._depth == 0:
                    return position
        self._scanned = position - start
        return -1

    def end(self) -> None:
        """No more bytes come. Raises BadRequest when something is left."""
        if self._buffer:
            raise BadRequest("The stream ends inside a JSON value.")
