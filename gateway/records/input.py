"""Lines of standard input or of files, as records that are to be sent. No I/O: chunks of bytes in, records out."""

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.gateway.records.json_lines import BadRecord, decoded, record_of
from headgate.gateway.records.record import NewRecord

# Above what any broker takes by far (Kafka's own limit is 1 MiB by default): more is not a line but a mistake.
line_bytes_max = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How a line becomes a record."""

    as_json: bool = False
    base64: bool = False
    key_separator: bytes | None = None
    empty_as_null: bool = False
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None

    def record(self, line: bytes) -> NewRecord:
        """What a line leaves out, the options fill in. Raises BadRecord."""
        if self.as_json:
            read = record_of(line)
        else:
            key, value = self._split(line)
            read = NewRecord(key, value)
        return NewRecord(
            self.key if read.key is None else read.key,
            read.value,
            read.headers + self.headers,
            self.partition if read.partition is None else read.partition,
            self.timestamp_ms if read.timestamp_ms is None else read.timestamp_ms,
        )

    def _split(self, line: bytes) -> tuple[bytes | None, bytes | None]:
        key: bytes | None = None
        value = line
        if self.key_separator:
            before, separator, after = line.partition(self.key_separator)
            if not separator:
                raise BadRecord(f"no key separator {self.key_separator.decode(errors='replace')!r} in it")
            key, value = before, after
        if self.empty_as_null and not value:
            return key, None
        if self.base64:
            return (None if key is None else decoded(key, "the key")), decoded(value, "the value")
        return key, value


class Lines:
    """Cuts chunks into lines; the end of the input ends a last line that has no newline."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._rest_bytes = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Raises BadRecord when a line grows beyond the limit."""
        first, *others = chunk.split(b"\n")
        self._rest.append(first)
        self._rest_bytes += len(first)
        if self._rest_bytes > line_bytes_max:
            raise BadRecord(f"longer than {line_bytes_max} bytes")
        for other in others:
            yield b"".join(self._rest)
            self._rest, self._rest_bytes = [other], len(other)

    def end(self) -> Iterator[bytes]:
        if self._rest_bytes:
            yield b"".join(self._rest)
        self._rest, self._rest_bytes = [], 0
