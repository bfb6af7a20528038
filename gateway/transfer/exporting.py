"""Writes a topic to the files of a folder, partition by partition. An interrupted export continues where it stopped."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Final

from headgate.gateway.transfer.export_files import Output, finish
from headgate.gateway.transfer.export_format import ExportFormat
from headgate.gateway.transfer.manifest import BadManifest, ExportedFile, Manifest, load, sync_folder
from headgate.spark_udfs.topic_table import TopicTable

RECORDS_PER_FILE: Final = 1_000_000
"""Fewer files are easier to handle. An interrupted export repeats at most one file per partition."""


OpenOutput = Callable[[IO[bytes]], Awaitable[Output]]


def prepare(folder: Path, topic: str, kind: ExportFormat, *, raw: bool, partitions: int) -> Manifest:
    """The manifest of a new export, or of an earlier one to continue. Raises BadManifest, OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    found = load(folder)
    wanted = Manifest(topic, kind.value, raw, partitions)
    if found is None:
        if any(folder.iterdir()):
            raise BadManifest(f"{folder} is not empty and contains no export")
        wanted.save(folder)
        return wanted
    if (found.topic, found.format, found.raw) != (wanted.topic, wanted.format, wanted.raw):
        form = f"{'raw ' if found.raw else ''}{found.format}"
        raise BadManifest(f"{folder} contains an export of topic {found.topic} as {form}")
    found.partitions = max(found.partitions, partitions)
    return found


class Export:
    """`on_progress` is called with the number of offsets that were read."""

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        open_output: OpenOutput,
        on_progress: Callable[[int], None],
        records_per_file: int = RECORDS_PER_FILE,
    ) -> None:
        self._folder = folder
        self._manifest = manifest
        self._open_output = open_output
        self._on_progress = on_progress
        self._records_per_file = records_per_file
        self._done = 0

    async def run(self, table: TopicTable) -> None:
        """Raises a `SourceError`, BadManifest, OSError."""
        manifest = self._manifest
        starts = {partition: manifest.next_offset(partition) for partition in range(manifest.partitions)}
        for partition, part in table.by_partition(starts).items():
            if starts.get(partition, 0) > part.end:
                raise BadManifest(
                    f"{self._folder} contains partition {partition} up to offset {starts[partition] - 1}, and the "
                    f"partition ends at {part.end}: the topic was deleted and created again"
                )
            if part.start < part.end:
                await self._partition(partition, part)

    async def _partition(self, partition: int, table: TopicTable) -> None:
        start, batches = table.start, table.batches()
        batch = next(batches, None)
        while batch is not None:
            name = f"{self._manifest.topic}-{partition}-{start:020}.{self._manifest.format}"
            part, records, poison, end = self._folder / f"{name}.part", 0, 0, start
            with part.open("wb") as file:
                output = await self._open_output(file)
                while batch is not None and records < self._records_per_file:
                    if batch.num_rows:
                        poison += await output.write(batch)
                        records += batch.num_rows
                        end = batch.column("offset")[-1].as_py() + 1
                    self._on_progress(self._done + end - start)
                    batch = next(batches, None)
                output.close()
                finish(file, part, self._folder / name)
            self._done += end - start
            # After the last batch, offsets without records (compaction, transactions) are exported too.
            self._add(ExportedFile(name, partition, start, table.end if batch is None else end, records, poison))
            start = end

    def _add(self, file: ExportedFile) -> None:
        sync_folder(self._folder)
        self._manifest.files.append(file)
        self._manifest.save(self._folder)
