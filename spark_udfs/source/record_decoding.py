"""Decoding of the keys and values of records: the plan, and the columns that it adds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyarrow import lib as pa

from headgate.serdes.columnar import RecordRows
from headgate.serdes.columnar.memory import as_arrow, is_valid
from headgate.spark_udfs.dead_letter import KEY_RAW, PART
from headgate.spark_udfs.executor.decoding import Columns, Decoding, poison_rows, poison_rows_of, raw_of
from headgate.spark_udfs.spec.policy import OnPoison


@dataclass(frozen=True, slots=True)
class RecordDecoding:
    """At least one of value and key is decoded. Picklable and hashable. Both have the same policies and registry."""

    value: Decoding | None
    key: Decoding | None = None

    @property
    def any(self) -> Decoding:
        decoding = self.value or self.key
        assert decoding is not None
        return decoding

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """The columns after the columns of the record."""
        names = self.any.outcome_names[1:]
        if self.key is None:
            return names
        return (*names, PART, *((KEY_RAW,) if self.any.on_poison is OnPoison.DEAD_LETTER else ()))

    def for_topic(self, topic: str) -> "RecordDecoding":
        value, key = self.value, self.key
        return RecordDecoding(value and value.for_topic(topic), key and key.for_topic(topic))

    def outcomes(self, records: RecordRows, names: Sequence[str]) -> Iterator[tuple[RecordRows, dict[str, pa.Array]]]:
        """Yields slices of the records with their decoded columns. `names` are the columns that are needed.

        Yields several slices if the values are too large for one batch. Raises `PoisonError` in the mode FAIL.
        """
        for taken, values in self._values(records):
            if self.key is None:
                assert values is not None
                yield taken, self._value_outcome(self.any, taken, values, names)
                continue
            for start, keys in self._keys(self.key, taken):
                rows = len(keys.reasons)
                part = None if values is None else _slice(values, start, rows)
                yield taken.slice(start, rows), self._outcome(self.key, taken.slice(start, rows), part, keys, names)

    def _values(self, records: RecordRows) -> Iterator[tuple[RecordRows, Columns | None]]:
        if self.value is None:
            yield records, None
            return
        if self.value.is_in_place and not records.has_headers:
            decoded = self.value.in_place(records.payloads())
        else:
            decoded = self.value.in_pieces(records.column("value"), _headers(records))
        for start, columns in decoded:
            yield records.slice(start, len(columns.reasons)), columns

    def _keys(self, key: Decoding, records: RecordRows) -> Iterator[tuple[int, Columns]]:
        """Decoded keys. A record without a key is good: its key is null."""
        payloads = records.column("key")
        for start, columns in key.in_pieces(payloads, _headers(records)):
            reasons = columns.reasons
            if payloads.null_count:
                is_absent = ~is_valid(payloads.slice(start, len(reasons)))
                reasons = reasons.take(as_arrow(np.arange(len(reasons)), is_absent))
            yield start, replace(columns, reasons=reasons)

    def _value_outcome(
        self, decoding: Decoding, taken: RecordRows, columns: Columns, names: Sequence[str]
    ) -> dict[str, pa.Array]:
        # Copy payloads only for poison rows, if the `raw` column or an error message contains them.
        is_quoted = "raw" in names or decoding.on_poison is OnPoison.FAIL
        is_copied = is_quoted and len(poison_rows(columns)) > 0
        payloads = taken.column("value") if is_copied else pa.nulls(len(taken), pa.binary())
        outcome = decoding.outcome(columns, payloads, _headers(taken))
        return dict(zip(decoding.outcome_names, outcome, strict=True))

    def _outcome(
        self, key: Decoding, taken: RecordRows, values: Columns | None, keys: Columns, names: Sequence[str]
    ) -> dict[str, pa.Array]:
        rows = len(taken)
        payloads = taken.column("key")
        made: dict[str, pa.Array] = {}
        if self.value is not None and values is not None:
            made = self._value_outcome(self.value, taken, values, names)
        # Raises in the mode FAIL.
        key.outcome(keys, payloads, _headers(taken))
        reasons = made.get("reason", pa.nulls(rows, pa.string()))
        is_bad, is_bad_key = np.zeros(rows, bool), np.zeros(rows, bool)
        is_bad_key[poison_rows(keys)] = True
        is_bad[poison_rows_of(reasons)] = True
        # The reason of the value takes precedence.
        is_bad_key &= ~is_bad
        is_bad |= is_bad_key
        is_from_key = is_bad_key if values is not None else np.ones(rows, bool)
        chosen = as_arrow(np.arange(rows) + rows * is_from_key)
        made["reason"] = pa.concat_arrays([reasons, keys.reasons]).take(chosen)
        schema_ids = made.get("schema_id", pa.nulls(rows, pa.int64()))
        made["schema_id"] = pa.concat_arrays([schema_ids, keys.schema_ids]).take(chosen)
        made["key"] = keys.values
        made[PART] = pa.array(["value", "key"], pa.string()).take(as_arrow(is_bad_key.astype(np.int8), ~is_bad))
        bad = np.flatnonzero(is_bad).astype(np.int64)
        for name, column in (("raw", "value"), (KEY_RAW, "key")):
            if name in names:
                made[name] = raw_of(taken.column(column), bad) if len(bad) else pa.nulls(rows, pa.binary())
        return made


def _headers(records: RecordRows) -> pa.Array | None:
    return records.column("headers") if records.has_headers else None


def _slice(columns: Columns, start: int, rows: int) -> Columns:
    return Columns(
        columns.values.slice(start, rows), columns.reasons.slice(start, rows), columns.schema_ids.slice(start, rows)
    )
