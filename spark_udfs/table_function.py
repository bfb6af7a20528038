"""The SQL table function `headgate_decode`. Its columns depend on the subject.

Spark passes the rows of a table function one by one. They are decoded in batches. Spark takes the results as Python and
Java objects, which use about ten times the memory of columns, and all results of one call together. Each call therefore
returns one small batch, or one large row. The remaining rows wait for the next call.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyarrow import lib as pa

from headgate.serdes.avro.column_size import CELL_BYTES
from headgate.spark_udfs.driver.outcome_schema import outcome_type, spark_value_type
from headgate.spark_udfs.driver.planning import choice_of, plan_decoding
from headgate.spark_udfs.executor.decoding import Columns, Decoding
from headgate.spark_udfs.executor.python_values import python_value
from headgate.spark_udfs.frame import FrameError
from headgate.spark_udfs.spec.policy import OnRegistryDown
from headgate.spark_udfs.spec.registry_options import RegistryOptions

if TYPE_CHECKING:
    from pyspark.sql.udtf import AnalyzeArgument

BATCH_ROWS_MIN = 16
BATCH_ROWS_MAX = 2000
"""Rows that wait to be decoded together. The number doubles while they fit into one batch."""
BATCH_BYTES_MAX = 8 * 1024 * 1024
"""Size of a batch as columns. One row may be larger."""


def decode_table_function(options: RegistryOptions, on_registry_down: OnRegistryDown) -> Any:
    """The table function for one registry. Spark analyzes each call in a separate process."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import Row, StructType
    from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

    @dataclass
    class Analyzed(AnalyzeResult):
        decoding: Decoding | None = None
        column: str = ""
        others: tuple[str, ...] = ()

    class HeadgateDecode:
        def __init__(self, analyzed: Analyzed) -> None:
            assert analyzed.decoding is not None
            self._decoding = analyzed.decoding
            self._column = analyzed.column
            self._others = analyzed.others
            self._rows: list[Row] = []
            self._sizes: list[int] = []
            self._cells, self._repeated_cells = cells(self._decoding.decoder().type)
            self._batch_rows = BATCH_ROWS_MIN

        @staticmethod
        def analyze(
            table: AnalyzeArgument, subject: AnalyzeArgument, fields: AnalyzeArgument | None = None
        ) -> Analyzed:
            column, others = payload_column(table)
            wanted = None if fields is None else [name.strip() for name in constant(fields, "fields").split(",")]
            choice = choice_of(constant(subject, "the subject"), fields=wanted)
            planned = plan_decoding(choice, options, on_registry_down=on_registry_down)
            decoding = replace(planned, batch_bytes_max=BATCH_BYTES_MAX)
            assert isinstance(table.dataType, StructType)
            kept = [table.dataType[name] for name in others]
            outcome = outcome_type(decoding, spark_value_type(decoding))
            result = StructType([*kept, *outcome.fields])
            return Analyzed(result, decoding=decoding, column=column, others=others)

        def eval(self, table: Row, *constants: str) -> Iterator[tuple[Any, ...]]:
            self._rows.append(table)
            # A high estimate of the size as columns: an item of an array takes at least one byte of the payload.
            size = CELL_BYTES * (self._cells + self._repeated_cells * len(table[self._column] or b""))
            self._sizes.append(size)
            if len(self._rows) >= self._batch_rows or sum(self._sizes) >= BATCH_BYTES_MAX:
                yield from self._first_batch()

        def terminate(self) -> Iterator[tuple[Any, ...]]:
            """The rows that wait: at most one large row, and a batch of small ones."""
            payloads = self._payloads()
            for start, columns in self._decoding.in_pieces(payloads):
                yield from self._results(start, payloads, columns)
            self._rows.clear()

        def _first_batch(self) -> Iterator[tuple[Any, ...]]:
            payloads = self._payloads()
            _, columns = next(self._decoding.in_pieces(payloads))
            yield from self._results(0, payloads, columns)
            done = len(columns.reasons)
            self._batch_rows = min(2 * self._batch_rows, BATCH_ROWS_MAX)
            del self._rows[:done], self._sizes[:done]

        def _payloads(self) -> pa.Array:
            column = self._column
            return pa.array([None if row[column] is None else bytes(row[column]) for row in self._rows], pa.binary())

        def _results(self, start: int, payloads: pa.Array, columns: Columns) -> Iterator[tuple[Any, ...]]:
            rows = self._rows[start : start + len(columns.reasons)]
            values, *others = self._decoding.outcome(columns, payloads.slice(start, len(rows)))
            # Convert one value at a time.
            for row, value, *rest in zip(rows, values, *(array.to_pylist() for array in others), strict=True):
                yield (
                    *(row[name] for name in self._others),
                    python_value(value.as_py(), values.type, records_as_tuples=True),
                    *rest,
                )

    make: Any = f.udtf
    # Spark 4.0 converts the results of Arrow table functions with pandas, which treats NaN as null.
    return make(HeadgateDecode, useArrow=False)


def cells(kind: pa.DataType) -> tuple[int, int]:
    """The columns of a value, and those among them that are below an array or a map."""
    inner = [kind.field(at).type for at in range(kind.num_fields)]
    if not inner:
        return 1, 0
    found = [cells(each) for each in inner]
    total = sum(all_cells for all_cells, _ in found)
    is_repeated = not isinstance(kind, pa.StructType)
    return 1 + total, total if is_repeated else sum(repeated for _, repeated in found)


def payload_column(table: "AnalyzeArgument") -> tuple[str, tuple[str, ...]]:
    """The name of the payload column, and the names of the others."""
    from pyspark.sql.types import BinaryType, StructType

    if not table.isTable or not isinstance(table.dataType, StructType):
        raise FrameError("the first argument must be a table: headgate_decode(TABLE(SELECT value FROM t), 'subject')")
    names = table.dataType.names
    column = names[0] if len(names) == 1 else "value"
    if column not in names or not isinstance(table.dataType[column].dataType, BinaryType):
        raise FrameError(f"the table needs a binary column `value`; it has {table.dataType.simpleString()}")
    return column, tuple(name for name in names if name != column)


def constant(argument: "AnalyzeArgument", name: str) -> str:
    if not isinstance(argument.value, str):
        raise FrameError(f"{name} must be a constant string")
    return argument.value
