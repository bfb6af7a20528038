"""Parses input lines into records to send. No I/O: chunks of bytes in, records out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from headgate.gateway.records.json_lines import BadRecord, decoded, record_of
from headgate.gateway.records.record import NewRecord

# Far above the default record limit of Kafka (1 MiB). Longer input is not line-based.
line_bytes_max = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class InputRow:
    """A record of the input, or the reason why it is none."""

    name: str
    """The place in the input, for messages: `line 3`."""
    text: bytes
    """The input, for the file of rejected records."""
    record: NewRecord | BadRecord
    is_encoded: bool = False
    """True if the value is encoded already."""


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How to parse a line into a record."""

    as_json: bool = False
    base64: bool = False
    key_separator: bytes | None = None
    empty_as_null: bool = False
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None
    encoded: frozenset[str] = frozenset()
    """`key` and `value`, if a schema encodes them. Their text must be JSON."""

    def row(self, name: str, line: bytes) -> InputRow:
        try:
            return InputRow(name, line, self.record(line))
        except BadRecord as error:
            return InputRow(name, line, error)

    def record(self, line: bytes) -> NewRecord:
        """Parse a line. Options provide the fields that the line lacks. Raises BadRecord."""
        if self.as_json:
            read = record_of(line, self.encoded)
        else:
            key, value = self._split(line)
            read = NewRecord(key, value)
        return self.with_defaults(read)

    def with_defaults(self, read: NewRecord) -> NewRecord:
        """The record, with fields of the options where it has none."""
        return replace(
            read,
            key=self.key if read.key is None else read.key,
            headers=read.headers + self.headers,
            partition=self.partition if read.partition is None else read.partition,
            timestamp_ms=self.timestamp_ms if read.timestamp_ms is None else read.timestamp_ms,
        )

    def _split(self, line: bytes) -> tuple[bytes | None, bytes | None]:
        key: bytes | None = None
        value = line
        if self.key_separator:
            before, separator, after = line.partition(self.key_separator)
            if not separator:
                raise BadRecord(f"no key separator {self.key_separator.decode(errors='replace')!r} in the line")
            key, value = before, after
        if self.empty_as_null and not value:
            return key, None
        if self.base64:
            return (None if key is None else decoded(key, "the key")), decoded(value, "the value")
        return key, value


class Lines:
    """Splits chunks into lines. The last line needs no newline."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._rest_bytes = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Raises BadRecord if a line exceeds the limit."""
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
