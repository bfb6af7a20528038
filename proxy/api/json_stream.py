"""JSON values one after the other, with any white space between: cut apart, and parsed, as the bytes arrive.

A value on a line of its own is the common case and costs one attempt to parse it. What spans lines, or shares one, is
cut where braces and brackets outside of strings close. A value may be no larger than the limit: a stream without
end costs bounded memory.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from proxy.api.body import may_lose_digits, parse_json
from proxy.errors import BadRequest

_MARKS: Final = re.compile(rb'["{}\[\]\\]')
_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_BRACE: Final = ord("{")
_OPENING, _CLOSING = frozenset(b"{["), frozenset(b"}]")
_BLANK: Final = b" \t\r\n"


class JsonSplitter:
    """Feed bytes, get whole documents. Only objects are cut; anything else between them is a fault."""

    def __init__(self, document_bytes_max: int) -> None:
        self._max = document_bytes_max
        self._buffer = b""
        self._scanned = 0
        self._depth = 0
        self._in_string = False

    def feed(self, chunk: bytes) -> Iterator[tuple[Any, int]]:
        """The documents that end in `chunk`, with their sizes. Raises BadRequest."""
        data = self._buffer + chunk if self._buffer else chunk
        start = 0
        if self._scanned == 0 and self._depth == 0 and data[:1] == b"{" and not may_lose_digits(data):
            # Whole lines, as long as each is a document; what is not is left to the scan.
            loads = orjson.loads
            while data[start : start + 1] == b"{":
                end = data.find(b"\n", start)
                if end < 0:
                    break
                try:
                    value = loads(data[start:end])
                except orjson.JSONDecodeError:
                    break
                yield value, end - start
                start = end + 1
        self._buffer = data[start:] if start else data
        if self._buffer:
            yield from self._scan()
        if len(self._buffer) > self._max:
            raise BadRequest(f"A record in the stream is over the limit of {self._max} bytes.")

    def _scan(self) -> Iterator[tuple[Any, int]]:
        start = 0
        position = self._scanned
        data = self._buffer
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
                    document = data[start:position].strip(_BLANK)
                    yield parse_json(document), len(document)
                    start = position
        left = data[start:].lstrip(_BLANK)
        if left and self._depth == 0:
            raise BadRequest("The stream must hold JSON objects, one after the other.")
        self._scanned = position - (len(data) - len(left))
        self._buffer = left
        if not left:
            self._scanned = 0

    def end(self) -> None:
        """No more bytes come. Raises BadRequest when something is left."""
        if self._buffer.strip(_BLANK):
            raise BadRequest("The stream ends inside a JSON value.")
