"""Find the subject of each payload, for queries that read several subjects.

The schema id of a payload determines its subject: the subject that has this schema as a version. Schemas that are
registered while the query runs are matched by their record name first, which needs no request.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes import InvalidSchema, Poison, Reason
from headgate.serdes.avro import parse
from headgate.serdes.avro.schema import type_name
from headgate.serdes.client import RegistryClientError
from headgate.serdes.columnar import Spans
from headgate.serdes.columnar.spans import spans_of
from headgate.serdes.framing import FRAME_BYTES, header_name, unframe_record
from headgate.spark_udfs.executor.schema_id_headers import header_schemas
from headgate.spark_udfs.executor.writer_schemas import WriterSchemas
from headgate.spark_udfs.spec.reader import Reader, SchemaText, TypedReader

NO_FRAME = np.iinfo(np.int64).min
"""The number of a payload without a schema id. The first decoder rejects it, with the right reason."""


class TypeRouter:
    def __init__(self, reader: TypedReader, writers: Callable[[Reader], WriterSchemas], *, is_key: bool) -> None:
        self._readers = reader.readers
        self._is_key = is_key
        subjects = reader.subjects
        ranks = {subject: rank for rank, subject in enumerate(reader.preferred)}
        self._order = sorted(range(len(subjects)), key=lambda at: ranks.get(subjects[at], len(ranks)))
        known = {number: text for reader in self._readers for number, text in reader.writers}
        self._writers = writers(Reader(self._readers[0].schema, writers=tuple(known.items())))
        self._names = [_name_of(reader.schema) for reader in self._readers]
        self._places: dict[int, int] = {
            number: at for at in reversed(self._order) for number, _ in self._readers[at].writers
        }
        self._foreign: set[int] = set()

    def route(
        self, payloads: pa.Array | Spans, headers: pa.Array | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each row, the index of its reader or a negative reason, and its schema id, negative if it has none."""
        numbers = _schema_ids(spans_of(payloads))
        found = None if headers is None else header_schemas(headers, self._writers, header_name(self._is_key))
        if found is not None:
            numbers[found.rows] = [NO_FRAME if isinstance(one, Reason) else one for one in found.numbers]
        distinct, inverse = np.unique(numbers, return_inverse=True)
        places = [self._place(number) for number in distinct.tolist()]
        return np.array([-one if isinstance(one, Reason) else one for one in places], np.int64)[inverse], numbers

    def place(self, payload: bytes | None, headers: list[tuple[str, bytes | None]]) -> int | Reason:
        """The index of the reader of one payload, or a reason."""
        frame = unframe_record(payload, headers, self._is_key)
        if isinstance(frame, Poison):
            return 0
        number = self._writers.number_of_frame(frame)
        return number if isinstance(number, Reason) else self._place(number)

    def _place(self, number: int) -> int | Reason:
        if number == NO_FRAME:
            return 0
        place = self._places.get(number)
        if place is not None:
            return place
        if number in self._foreign:
            return Reason.UNRESOLVABLE
        text = self._writers.unchecked(number)
        if isinstance(text, Reason):
            return text
        try:
            place = self._found(number, text)
        except RegistryClientError:
            return Reason.REGISTRY_UNAVAILABLE
        if place is None:
            self._foreign.add(number)
            return Reason.UNRESOLVABLE
        self._places[number] = place
        return place

    def _found(self, number: int, text: SchemaText) -> int | None:
        """Raises `RegistryClientError`."""
        name = _name_of(text)
        same = [at for at in self._order if name is not None and self._names[at] == name]
        if len(same) == 1:
            return same[0]
        for at in same or self._order:
            if self._writers.is_version_of(number, self._readers[at].subject or ""):
                return at
        return same[0] if same else None


def _name_of(text: SchemaText) -> str | None:
    """The full name of an Avro record. None for other schemas."""
    if text.language != "AVRO":
        return None
    try:
        return type_name(parse(text.text, dict(text.references)))
    except InvalidSchema:
        return None


def _schema_ids(spans: Spans) -> NDArray[np.int64]:
    """The schema ids in the frames, and `NO_FRAME` for rows without a frame."""
    ids = np.full(len(spans), NO_FRAME, np.int64)
    is_framed = spans.ends - spans.starts >= FRAME_BYTES
    if len(spans.present):
        is_framed &= spans.present != 0
    rows = np.flatnonzero(is_framed)
    rows = rows[spans.data[spans.starts[rows]] == 0]
    starts = spans.starts[rows]
    ids[rows] = 0
    for place in range(1, FRAME_BYTES):
        ids[rows] = (ids[rows] << 8) | spans.data[starts + place]
    return ids
