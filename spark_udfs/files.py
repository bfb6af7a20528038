"""Parquet files of payloads, decoded as they are read: `decode_files`, the fast way from files.

A frame of payloads goes from Spark's reader to Python and back; here Python reads the files itself and hands Spark the
decoded columns, in one hop and with no rows in between. Plain files or folders of them, wherever `pyarrow.fs` reaches;
tables with partitions in their paths, and formats with a log of their own (Delta), stay `spark_udfs.frame`'s.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from serdes import SchemaDefinition
from spark_udfs.extra import need_spark
from spark_udfs.frame import FrameDecoding, FrameError, outcome_schema

if TYPE_CHECKING:
    from pyarrow import lib as pa
    from pyspark.sql import DataFrame, SparkSession

    from spark_udfs.decoding import Decoding
    from spark_udfs.planning import Registry

BATCH_ROWS = 20_000
"""Rows of an Arrow batch: enough to make its own cost small, few enough to stay near the processor."""

PARTITION_BYTES = 128 * 1024 * 1024
"""Of compressed files that one task reads, as in Spark's own reader; less where there would be idle cores."""


@dataclass(frozen=True, slots=True)
class File:
    """On a file system of pyarrow's, which travels as it is."""

    system: Any
    path: str

    def open(self) -> Any:
        """Raises `FrameError` where it is no Parquet."""
        from pyarrow import lib as pa
        from pyarrow import parquet

        open_file: Any = parquet.ParquetFile
        try:
            return open_file(self.path, filesystem=self.system)
        except (pa.ArrowException, OSError) as error:
            raise FrameError(f"{self.path} is not a Parquet file that can be read: {error}") from error


@dataclass(frozen=True, slots=True)
class Piece:
    """Row groups of one file, from the first up to the end."""

    file: File
    first: int
    end: int
    size: int


def decode_files(
    spark: "SparkSession",
    path: str | Sequence[str],
    subject: str | None = None,
    *,
    column: str = "value",
    keep: Sequence[str] = (),
    registry: "Registry" = None,
    version: int | None = None,
    schema_id: int | None = None,
    schema: str | SchemaDefinition | None = None,
    fields: Sequence[str] | None = None,
    on_poison: str = "DEAD_LETTER",
    on_new_version: str = "KEEP",
    details: bool = False,
    flat: bool = False,
) -> "DataFrame":
    """Parquet files with a binary column of payloads, as `decode_frame` would give them; `keep` names other columns.

    The files are listed now, and read when the frame is used, each row group by one task.
    """
    need_spark()
    from spark_udfs.planning import choice_of, plan_decoding
    from spark_udfs.registry_options import resolve

    choice = choice_of(subject, version, schema_id, schema, fields)
    options = resolve(registry, None, spark)
    decoding = plan_decoding(choice, options, on_poison=on_poison, on_new_version=on_new_version)
    paths = [path] if isinstance(path, str) else list(path)
    source = payload_files(decoding, paths, column, tuple(keep), spark.sparkContext.defaultParallelism, details, flat)
    spark.dataSource.register(source)
    return spark.read.format(source.name()).load()


def payload_files(
    decoding: "Decoding",
    paths: list[str],
    column: str,
    keep: tuple[str, ...],
    tasks_min: int,
    details: bool,
    flat: bool,
) -> Any:
    """A data source for these files. It is a class of its own, since options would show secrets in Spark's plans."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    from pyspark.sql.types import StructField, StructType

    from spark_udfs.types import spark_type

    files = listed(paths)
    kept = kept_fields(files[0], column, keep)
    made = outcome_schema(decoding, details=details, flat=flat)
    clashes = [name for name in keep if name.lower() in [other.lower() for other in made.names]]
    if clashes:
        raise FrameError(
            f"the columns {', '.join(clashes)} would stand beside others of the same name; do not keep them"
        )
    result = StructType([*(StructField(field.name, spark_type(field.type)) for field in kept), *made.fields])
    parts = planned(files, tasks_min)
    identity = repr((paths, column, keep, details, flat, hash(decoding), len(parts)))
    label = "headgate_files_" + sha256(identity.encode()).hexdigest()[:16]

    class FilesPartition(InputPartition):
        def __init__(self, pieces: list[Piece]) -> None:
            self.pieces = pieces

    class FilesReader(DataSourceReader):
        def partitions(self) -> Sequence[InputPartition]:
            return [FilesPartition(pieces) for pieces in parts]

        def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
            # Spark makes up a partition of its own where there is none to read.
            pieces = partition.pieces if isinstance(partition, FilesPartition) else []
            decode = FrameDecoding(decoding, len(keep), None, details, flat)
            for piece in pieces:
                yield from decode(batches_of(piece, [*keep, column]))

    class Files(DataSource):
        @classmethod
        def name(cls) -> str:
            return label

        def schema(self) -> StructType:
            return result

        def reader(self, schema: StructType) -> DataSourceReader:
            return FilesReader()

    return Files


def batches_of(piece: Piece, columns: list[str]) -> "Iterator[pa.RecordBatch]":
    """The columns of a piece, as Spark takes them, in this order."""
    from pyarrow import lib as pa

    from spark_udfs.types import to_spark

    with piece.file.open() as reader:
        groups = list(range(piece.first, piece.end))
        for batch in reader.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns):
            yield pa.RecordBatch.from_arrays([to_spark(batch.column(name)) for name in columns], columns)


def listed(paths: list[str]) -> list[File]:
    """The files; folders are walked, and names that begin with a dot or an underscore are passed over."""
    import pyarrow.fs

    fs: Any = pyarrow.fs
    found: list[File] = []
    for path in paths:
        system, place = fs.FileSystem.from_uri(path if ":" in path else str(Path(path).absolute()))
        info = system.get_file_info(place)
        if info.type == fs.FileType.NotFound:
            raise FrameError(f"there is nothing at {path}")
        is_file = info.type == fs.FileType.File
        for entry in [info] if is_file else system.get_file_info(fs.FileSelector(place, recursive=True)):
            below = [] if is_file else entry.path.removeprefix(place).strip("/").split("/")
            if any("=" in name for name in below[:-1]):
                raise FrameError(f"{path} is parted by folders ({entry.path}); read it with Spark, then decode_frame")
            if entry.type == fs.FileType.File and not any(name.startswith((".", "_")) for name in below):
                found.append(File(system, entry.path))
    if not found:
        raise FrameError(f"there are no files at {', '.join(paths)}")
    return sorted(found, key=lambda file: file.path)


def kept_fields(file: File, column: str, keep: tuple[str, ...]) -> list[Any]:
    """The fields to keep, as the first file has them. Raises `FrameError` where a column is not there."""
    from pyarrow import lib as pa

    with file.open() as reader:
        schema = reader.schema_arrow
    missing = [name for name in (column, *keep) if name not in schema.names]
    if missing:
        raise FrameError(f"there is no column {', '.join(missing)} in {file.path}; it has {', '.join(schema.names)}")
    if schema.field(column).type not in (pa.binary(), pa.large_binary()):
        raise FrameError(f"the column {column} holds {schema.field(column).type}, not binary payloads")
    return [schema.field(name) for name in keep]


def planned(files: list[File], tasks_min: int) -> list[list[Piece]]:
    """The row groups of all files as tasks of about equal size: two for each core at least, where there are so many."""
    pieces: list[Piece] = []
    for file in files:
        with file.open() as reader:
            metadata = reader.metadata
            pieces += [
                Piece(file, group, group + 1, max(metadata.row_group(group).total_byte_size, 1))
                for group in range(metadata.num_row_groups)
            ]
    wanted = min(PARTITION_BYTES, sum(piece.size for piece in pieces) // max(2 * tasks_min, 1) + 1)
    tasks: list[list[Piece]] = []
    size = wanted
    for piece in pieces:
        if size + piece.size > wanted:
            tasks.append([])
            size = 0
        tasks[-1].append(piece)
        size += piece.size
    return tasks
