"""The SQL table function `headgate_decode`. Its columns depend on the subject.

Spark passes the rows of a table function one by one. They are decoded in batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyarrow import lib as pa

from headgate.spark_udfs.driver.outcome_schema import outcome_type, spark_value_type
from headgate.spark_udfs.driver.planning import choice_of, plan_decoding
from headgate.spark_udfs.executor.decoding import Decoding
from headgate.spark_udfs.executor.python_values import python_value
from headgate.spark_udfs.frame import FrameError
from headgate.spark_udfs.spec.policy import OnRegistryDown
from headgate.spark_udfs.spec.registry_options import RegistryOptions

if TYPE_CHECKING:
    from pyspark.sql.udtf import AnalyzeArgument

BATCH_ROWS = 2000


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

        @staticmethod
        def analyze(
            table: AnalyzeArgument, subject: AnalyzeArgument, fields: AnalyzeArgument | None = None
        ) -> Analyzed:
            column, others = payload_column(table)
            wanted = None if fields is None else [name.strip() for name in constant(fields, "fields").split(",")]
            choice = choice_of(constant(subject, "the subject"), fields=wanted)
            decoding = plan_decoding(choice, options, on_registry_down=on_registry_down)
            assert isinstance(table.dataType, StructType)
            kept = [table.dataType[name] for name in others]
            outcome = outcome_type(decoding, spark_value_type(decoding))
            result = StructType([*kept, *outcome.fields])
            return Analyzed(result, decoding=decoding, column=column, others=others)

        def eval(self, table: Row, *constants: str) -> Iterator[tuple[Any, ...]]:
            self._rows.append(table)
            if len(self._rows) >= BATCH_ROWS:
                yield from self._flush()

        def terminate(self) -> Iterator[tuple[Any, ...]]:
            yield from self._flush()

        def _flush(self) -> Iterator[tuple[Any, ...]]:
            rows, self._rows = self._rows, []
            column = self._column
            payloads = pa.array([None if row[column] is None else bytes(row[column]) for row in rows], pa.binary())
            columns = self._decoding.decode(payloads)
            outcome = [array.to_pylist() for array in self._decoding.outcome(columns, payloads)]
            for row, value, *rest in zip(rows, *outcome, strict=True):
                yield (
                    *(row[name] for name in self._others),
                    python_value(value, columns.values.type, records_as_tuples=True),
                    *rest,
                )

    make: Any = f.udtf
    # Spark 4.0 converts the results of Arrow table functions with pandas, which treats NaN as null.
    return make(HeadgateDecode, useArrow=False)


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
