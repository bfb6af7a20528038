"""Read a topic into Arrow, pandas, Polars or DuckDB, without Spark.

    from headgate import read_topic

    orders = read_topic("orders")
    orders.good.to_pandas()
    orders.poison.select(["offset", "reason", "raw"])

The reader, the decoder, the columns and the types are those of the Spark data source. Every record is in `good` or in
`poison`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from json import dumps
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.extra import MissingExtra

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from pyarrow import lib as pa

    from headgate.spark_udfs.source.options import ReadOptions
    from headgate.spark_udfs.source.ranges import OffsetRange
    from headgate.spark_udfs.source.record_decoding import RecordDecoding

Position = str | int | datetime | Mapping[int, int]
"""`earliest`, `latest`, a time (milliseconds since 1970 or a datetime), or offsets by partition."""

NEEDED = ("numpy", "pyarrow")
_OUTCOME = ("reason", "raw", "part", "key_raw")
"""Columns of poison only."""


def read_topic(
    topic: str,
    *,
    bootstrap_servers: str = "localhost:9092",
    registry: str | None = None,
    subject: str | Sequence[str] | None = None,
    key_subject: str | None = None,
    fields: Sequence[str] | None = None,
    start: Position = "earliest",
    end: Position = "latest",
    headers: bool = False,
    raw: bool = False,
    options: Mapping[str, str] | None = None,
    progress: bool = False,
) -> "TopicTable":
    """Plan the read of a topic from `start` to the end that it has now. Records are read by the methods of the result.

    `subject` is the topic's name and `-value` by default; `raw` leaves the values as bytes. `fields` are the fields of
    an Avro value to decode. `options` are further options of the Spark data source, such as
    `kafka.security.protocol` or `registry.basic.auth.user.info`. `progress` shows a progress bar.

    Raises a `SourceError` if the cluster or an option is at fault, and `ReaderError` if the schema is.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"{' and '.join(missing)} not installed; run pip install 'headgate[arrow]'")
    from headgate.spark_udfs.source.options import read_options

    given = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic, "includeHeaders": str(headers)}
    if not raw:
        given["subject"] = _names(f"{topic}-value" if subject is None else subject)
    if key_subject is not None:
        given["key.subject"] = key_subject
    if fields is not None:
        given["fields"] = _names(fields)
    if registry is not None:
        given["registry.url"] = registry
    given |= _position("starting", topic, start) | _position("ending", topic, end) | dict(options or {})
    read = read_options({name: text for name, text in given.items() if text}, is_streaming=False)
    decoding = None if read.decoding is None else read.decoding.planned(read.registry)
    return TopicTable(read, decoding, _ranges(read), progress)


@dataclass(frozen=True)
class TopicTable:
    """The planned read of a topic. `good` and `poison` read it once. `batches` reads it again each time."""

    _options: "ReadOptions"
    _decoding: "RecordDecoding | None"
    _ranges: "tuple[OffsetRange, ...]"
    _progress: bool = False

    @property
    def offset_count(self) -> int:
        """The size of the offset ranges. Compacted topics and transactions have fewer records."""
        return sum(one.size for one in self._ranges)

    def by_partition(self, starts: Mapping[int, int]) -> "dict[int, TopicTable]":
        """The read of each partition, which starts at an offset of `starts` if that is later."""
        read: dict[int, TopicTable] = {}
        for one in self._ranges:
            start = min(max(one.start, starts.get(one.at.partition, 0)), one.end)
            read[one.at.partition] = replace(self, _ranges=(replace(one, start=start),))
        return read

    @property
    def end(self) -> int:
        """The offset after the last record of one partition."""
        (only,) = self._ranges
        return only.end

    @property
    def start(self) -> int:
        """The first offset of one partition."""
        (only,) = self._ranges
        return only.start

    @cached_property
    def schema(self) -> "pa.Schema":
        """The columns of `batches`. `reason` is null for good records."""
        from headgate.spark_udfs.source.columns import arrow_schema

        return arrow_schema(self._decoding, has_headers=self._options.has_headers)

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Good and bad records, as bounded batches. Raises a `SourceError`."""
        from headgate.spark_udfs.source.fetching import FetchOptions
        from headgate.spark_udfs.source.loop import loop_thread
        from headgate.spark_udfs.source.reading import ReadSpec, read_range, shared_cluster

        options = self._options
        fetch = FetchOptions(options.isolation, options.fetch_bytes, options.fetch_wait_ms, options.is_loss_fatal)
        spec = ReadSpec(options.connection, fetch, tuple(self.schema.names), self._decoding)
        try:
            with _progress_bar(self.offset_count, is_shown=self._progress) as advance:
                for wanted in self._ranges:
                    reached = wanted.start
                    for batch in read_range(spec, wanted):
                        if batch.num_rows:
                            last = batch.column("offset")[-1].as_py() + 1
                            advance(last - reached)
                            reached = last
                        yield batch
                    advance(wanted.end - reached)
        finally:
            # An open client would log every failed connection after the cluster stops.
            loop_thread().run(shared_cluster(options.connection).close())

    def reader(self) -> "pa.RecordBatchReader":
        """`batches` for libraries that read a stream of Arrow batches, such as DuckDB."""
        from pyarrow import lib as pa

        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    @property
    def good(self) -> "pa.Table":
        """The records that were decoded."""
        return self._tables[0]

    @property
    def poison(self) -> "pa.Table":
        """The records that were not decoded, with `reason` and `raw`."""
        return self._tables[1]

    def to_pandas(self) -> "pd.DataFrame":
        """The good records, with Arrow types: nulls and 64-bit integers stay exact."""
        frame: pd.DataFrame = self.good.to_pandas(types_mapper=_library("pandas").ArrowDtype)
        return frame

    def to_polars(self) -> "pl.DataFrame":
        """The good records."""
        frame: pl.DataFrame = _library("polars").from_arrow(self.good)
        return frame

    def to_duckdb(self, connection: "duckdb.DuckDBPyConnection | None" = None) -> "duckdb.DuckDBPyRelation":
        """The good records as a relation of the connection, or of DuckDB's default connection."""
        relation: duckdb.DuckDBPyRelation = (connection or _library("duckdb")).from_arrow(self.good)
        return relation

    @cached_property
    def _tables(self) -> "tuple[pa.Table, pa.Table]":
        from pyarrow import lib as pa

        table = pa.Table.from_batches(self.batches(), self.schema)
        if self._decoding is None:
            return table, table.slice(0, 0)
        is_good = table.column("reason").is_null()
        good = table.filter(is_good).drop_columns([name for name in _OUTCOME if name in table.column_names])
        # The payload of a bad record is in `raw`, and in `key_raw` if keys are decoded.
        decoded = ["value"] if self._decoding.value is not None else []
        decoded += ["key"] if self._decoding.key is not None else []
        return good, table.filter(table.column("reason").is_valid()).drop_columns(decoded)


def _ranges(options: "ReadOptions") -> "tuple[OffsetRange, ...]":
    from headgate.spark_udfs.source.cluster import Cluster
    from headgate.spark_udfs.source.loop import loop_thread
    from headgate.spark_udfs.source.planning import batch_ranges

    async def planned() -> "list[OffsetRange]":
        cluster = Cluster(options.connection)
        try:
            return await batch_ranges(cluster, options)
        finally:
            await cluster.close()

    return tuple(loop_thread().run(planned()))


def _names(names: str | Sequence[str]) -> str:
    return names if isinstance(names, str) else dumps(list(names))


def _position(edge: str, topic: str, position: Position) -> dict[str, str]:
    """The option of the data source for a position."""
    if isinstance(position, datetime):
        if position.tzinfo is None:
            raise ValueError(f"{position} has no time zone; pass datetime(…, tzinfo=UTC)")
        position = int(position.timestamp() * 1000)
    if isinstance(position, int):
        return {f"{edge}Timestamp": str(position)}
    if isinstance(position, Mapping):
        offsets = {str(partition): offset for partition, offset in position.items()}
        return {f"{edge}Offsets": dumps({topic: offsets})}
    return {f"{edge}Offsets": position}


def _library(name: str) -> Any:
    """Raises `MissingExtra`."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(f"{name} is not installed; run pip install {name}") from error


@contextmanager
def _progress_bar(offsets: int, *, is_shown: bool) -> "Iterator[Callable[[int], None]]":
    if not is_shown:
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # In a notebook, rich draws the bar below the cell.
    with Progress(*columns) as progress:
        task = progress.add_task("", total=offsets)
        yield lambda count: progress.advance(task, count)
