"""Sends the records of an export to a topic.

The progress of an import is stored beside the manifest, by target topic. It counts acknowledged records only. After an
interruption, records that were acknowledged after the last save are sent again: at least once.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from headgate.gateway.kafka.producing import Receipt, Sender
from headgate.gateway.records.encoding import RecordEncoder
from headgate.gateway.records.input import InputRow, LineFormat, line_bytes_max
from headgate.gateway.records.json_lines import BadRecord
from headgate.gateway.records.record import NewRecord
from headgate.gateway.transfer.manifest import BadManifest, ExportedFile, Manifest, replace_json
from headgate.kafka_client.admin.topics import Topic
from headgate.kafka_client.options import ConnectionOptions

SAVE_RECORDS: Final = 100_000
"""Records between two saves of the progress."""
_JSON_LINES: Final = LineFormat(as_json=True)


class BadRow(ValueError):
    """A row of a file is not a record."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(why)
        self.name = name


class Import:
    def __init__(
        self,
        connection: ConnectionOptions,
        target: Topic,
        encoder: RecordEncoder,
        progress: "ImportProgress",
        on_progress: Callable[[int], None],
        *,
        keep_partitions: bool,
    ) -> None:
        self._connection = connection
        self._target = target
        self._encoder = encoder
        self._progress = progress
        self._on_progress = on_progress
        self._keep_partitions = keep_partitions
        self.sent = 0

    async def run(self, folder: Path, manifest: Manifest) -> None:
        """Raises BadRow, BadManifest, ProxyError, KafkaClientError."""
        for file in manifest.files:
            try:
                await self._file(file.name, rows_of(folder, manifest, file))
            finally:
                self._progress.save()

    async def _file(self, name: str, rows: Iterator[InputRow]) -> None:
        acknowledged = self._progress.acknowledged
        skipped = acknowledged.setdefault(name, 0)

        def count(_: Receipt) -> None:
            acknowledged[name] += 1

        # Receipts come in the order of the records.
        sender = Sender(self._connection, self._target, acks="all", compression="none", on_receipt=count)
        async with sender:
            for row in islice(rows, skipped, None):
                try:
                    record = await self._record(row)
                except BadRecord as error:
                    await sender.flush()
                    raise BadRow(row.name, str(error)) from error
                await sender.send(record)
                self.sent += 1
                self._on_progress(self.sent)
                if self.sent % SAVE_RECORDS == 0:
                    self._progress.save()

    async def _record(self, row: InputRow) -> NewRecord:
        if isinstance(row.record, BadRecord):
            raise row.record
        record = row.record if self._keep_partitions else replace(row.record, partition=None)
        if row.is_encoded or not self._encoder.applies_to(record):
            return record
        return await self._encoder.encode(record)


def rows_of(folder: Path, manifest: Manifest, file: ExportedFile) -> Iterator[InputRow]:
    """The records of a file in order. Raises BadManifest if a file cannot be read."""
    path = folder / file.name
    try:
        if manifest.format == "ndjson":
            yield from _lines(path)
        elif not manifest.raw:
            raise BadManifest(
                f"{path} contains decoded values. Import exports with --raw or --format ndjson; or encode the values "
                "with headgate produce --from parquet"
            )
        elif manifest.format == "parquet":
            yield from _parquet(path)
        else:
            yield from _avro(path)
    except (OSError, ValueError) as error:
        if isinstance(error, BadManifest):
            raise
        raise BadManifest(f"{path}: {error}") from error


def _lines(path: Path) -> Iterator[InputRow]:
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(line_bytes_max), b""), 1):
            yield _JSON_LINES.row(f"{path.name} line {number}", line.rstrip(b"\n"))


def _parquet(path: Path) -> Iterator[InputRow]:
    import pyarrow.parquet as pq

    from headgate.gateway.transfer.rows import records_of

    number = 0
    with pq.ParquetFile(path) as file:  # type: ignore[no-untyped-call]
        for batch in file.iter_batches(10_000):
            for record in records_of(batch):
                number += 1
                new = NewRecord(record.key, record.value, record.headers, record.partition, record.timestamp_ms)
                yield InputRow(f"{path.name} row {number}", b"", new, is_encoded=True)


def _avro(path: Path) -> Iterator[InputRow]:
    import fastavro

    with path.open("rb") as file:
        row: Any
        for number, row in enumerate(fastavro.reader(file), 1):
            headers = tuple((header["key"], header["value"]) for header in row["headers"])
            new = NewRecord(row["key"], row["value"], headers, row["partition"], row["timestamp"])
            yield InputRow(f"{path.name} row {number}", b"", new, is_encoded=True)


class ImportProgress:
    """How many records of each file are acknowledged, for one target."""

    def __init__(self, folder: Path, target: str) -> None:
        """`target` names the cluster and the topic."""
        name = hashlib.sha256(target.encode()).hexdigest()[:16]
        self._path = folder / f"headgate-import-{name}.json"
        self.acknowledged: dict[str, int] = {}
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            self.acknowledged = {str(file): int(count) for file, count in stored.items()}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise BadManifest(f"{self._path}: {error}") from error

    def save(self) -> None:
        replace_json(self._path, self.acknowledged)
