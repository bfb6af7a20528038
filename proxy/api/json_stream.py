"""JSON values one after the other, with any white space between: cut apart as the bytes arrive.

Lines are the common case and cost one split. What spans lines, or shares one, is cut where braces and brackets outside
of strings close. A value may be no larger than the limit, so that a stream without end costs bounded memory.
"""

import re
from collections.abc import Iterator

from proxy.errors import BadRequest

_MARKS = re.compile(rb'["{}\[\]\\]')
_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_OPENING, _CLOSING = frozenset(b"{["), frozenset(b"}]")
_BLANK = b" \t\r\n"


class JsonSplitter:
    """Feed bytes, get whole documents. Only objects are cut; anything else between them is a fault."""

    def __init__(self, document_bytes_max: int) -> None:
        self._max = document_bytes_max
        self._buffer = b""
        self._scanned = 0
        self._depth = 0
        self._in_string = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The documents that end in `chunk`. Raises BadRequest."""
        self._buffer += chunk
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
                    yield data[start:position].strip(_BLANK)
                    start = position
        self._buffer = data[start:]
        self._scanned = position - start
        if len(self._buffer) > self._max:
            raise BadRequest(f"A record in the stream is over the limit of {self._max} bytes.")

    def end(self) -> None:
        """No more bytes come. Raises BadRequest when something is left."""
        if self._buffer.strip(_BLANK):
            raise BadRequest("The stream ends inside a JSON value.")
