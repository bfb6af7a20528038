"""The data source `headgate` for Spark's Python Data Source API: one class that creates readers and writers.

Spark creates an instance on the driver, requests its schema, and pickles it to the processes that create readers and
writers. The pickled instance contains the reader schema. Spark starts a process for each step, and each process loads
this module. Each step therefore imports only the modules that it needs.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceWriter
from pyspark.sql.types import StructType

from headgate.spark_udfs.source.errors import BadOption

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamWriter

    from headgate.spark_udfs.source.options import ReadOptions
    from headgate.spark_udfs.source.reading import ReadSpec
    from headgate.spark_udfs.source.record_decoding import RecordDecoding


class HeadgateDataSource(DataSource):
    _decoding: "RecordDecoding | None" = None

    @classmethod
    def name(cls) -> str:
        return "headgate"

    def schema(self) -> StructType:
        from headgate.spark_udfs.source.options import read_options

        # Spark does not tell yet whether the query is a batch or a stream. Options of only one kind are checked later.
        options = read_options(_without_ends(self.options), is_streaming=True)
        return self._table(options)

    def reader(self, schema: StructType) -> DataSourceReader:
        from headgate.spark_udfs.source.batch_reader import BatchReader
        from headgate.spark_udfs.source.options import read_options

        options = read_options(self.options, is_streaming=False)
        return BatchReader(options, self._spec(options, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from headgate.spark_udfs.source.options import read_options

        options = read_options(self.options, is_streaming=True)
        spec = self._spec(options, schema)
        try:
            from headgate.spark_udfs.source.admission import StreamReader
        except ImportError:
            from headgate.spark_udfs.source.stream_reader import LegacyStreamReader

            return LegacyStreamReader(options, spec)
        return StreamReader(options, spec)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from headgate.spark_udfs.source.batch_writer import BatchWriter
        from headgate.spark_udfs.source.options import write_options

        _check_mode(overwrite=overwrite)
        return BatchWriter(write_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamWriter":
        from headgate.spark_udfs.source.options import write_options

        _check_mode(overwrite=overwrite)
        options = write_options(self.options)
        if hasattr(datasource, "DataSourceStreamArrowWriter"):
            from headgate.spark_udfs.source.stream_writer import StreamWriter

            return StreamWriter(options, schema)
        from headgate.spark_udfs.source.row_writer import RowStreamWriter

        return RowStreamWriter(options, schema)

    def _table(self, options: "ReadOptions") -> StructType:
        """Returns the columns that the options select. Sends at most one request to the registry."""
        from headgate.spark_udfs.source.decoded import read_registry
        from headgate.spark_udfs.source.spark_columns import chosen, flattened, table_schema

        if options.decoding is not None and self._decoding is None:
            self._decoding = options.decoding.planned(options.registry)
        addresses = None
        if self._decoding is not None:
            addresses = self._decoding.any.registry.addresses
        elif options.registry:
            addresses = read_registry(options.registry).addresses
        table = table_schema(self._decoding, has_headers=options.has_headers, registry=addresses)
        table = chosen(table, options.columns)
        return flattened(table) if options.is_flat else table

    def _spec(self, options: "ReadOptions", schema: StructType) -> "ReadSpec":
        from headgate.spark_udfs.source.fetching import FetchOptions
        from headgate.spark_udfs.source.reading import ReadSpec
        from headgate.spark_udfs.source.spark_columns import check_schema

        check_schema(schema, self._table(options))
        fetch = FetchOptions(options.isolation, options.fetch_bytes, options.fetch_wait_ms, options.is_loss_fatal)
        return ReadSpec(options.connection, fetch, tuple(schema.names), self._decoding, options.is_flat)


def _without_ends(options: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in options.items() if not name.lower().startswith("ending")}


def _check_mode(*, overwrite: bool) -> None:
    if overwrite:
        raise BadOption("mode", "records are added to a topic, never replaced; write with mode append")
