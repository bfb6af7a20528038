"""`headgate_decode` for SQL: a table function whose columns depend on the subject that it is given.

Spark hands a table function its rows one by one, and takes rows back; between that, they are decoded in batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyarrow import lib as pa

from headgate.spark_udfs.driver.planning import choice_of, plan_decoding
from headgate.spark_udfs.executor.decoding import Decoding
from headgate.spark_udfs.executor.spark_types import spark_type
from headgate.spark_udfs.frame import FrameError
from headgate.spark_udfs.spec.registry_options import RegistryOptions

if TYPE_CHECKING:
    from pyspark.sql.udtf import AnalyzeArgument

ROWS_AT_ONCE = 2000


def decode_table_function(options: RegistryOptions) -> Any:
    """The table function, which asks this registry. Spark analyzes each call in a process of its own."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import BinaryType, LongType, Row, StringType, StructType
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
            decoding = plan_decoding(choice, options)
            assert isinstance(table.dataType, StructType)
            made = StructType([table.dataType[name] for name in others])
            made = made.add("value", spark_type(decoding.decoder().type)).add("reason", StringType())
            made = made.add("schema_id", LongType()).add("raw", BinaryType())
            return Analyzed(made, decoding=decoding, column=column, others=others)

        def eval(self, table: Row, *constants: str) -> Iterator[tuple[Any, ...]]:
            self._rows.append(table)
            if len(self._rows) >= ROWS_AT_ONCE:
                yield from self._flushed()

        def terminate(self) -> Iterator[tuple[Any, ...]]:
            yield from self._flushed()

        def _flushed(self) -> Iterator[tuple[Any, ...]]:
            rows, self._rows = self._rows, []
            column = self._column
            payloads = pa.array([None if row[column] is None else bytes(row[column]) for row in rows], pa.binary())
            columns = self._decoding.decode(payloads)
            outcome = [array.to_pylist() for array in self._decoding.outcome(columns, payloads)]
            for row, value, *rest in zip(rows, *outcome, strict=True):
                yield (*(row[name] for name in self._others), python_value(value, columns.values.type), *rest)

    make: Any = f.udtf
    return make(HeadgateDecode)


def payload_column(table: "AnalyzeArgument") -> tuple[str, tuple[str, ...]]:
    """The column of payloads, and the names of the others."""
    from pyspark.sql.types import BinaryType, StructType

    if not table.isTable or not isinstance(table.dataType, StructType):
        raise FrameError("the first argument is a table: headgate_decode(TABLE(SELECT value FROM t), 'subject')")
    names = table.dataType.names
    column = names[0] if len(names) == 1 else "value"
    if column not in names or not isinstance(table.dataType[column].dataType, BinaryType):
        raise FrameError(f"the table needs a binary column `value`; it has {table.dataType.simpleString()}")
    return column, tuple(name for name in names if name != column)


def constant(argument: "AnalyzeArgument", name: str) -> str:
    if not isinstance(argument.value, str):
        raise FrameError(f"{name} is a text that is known when the query is analyzed")
    return argument.value


def python_value(value: Any, kind: pa.DataType) -> Any:
    """As Spark's rows take it: Arrow gives maps as pairs."""
    if value is None:
        return None
    if isinstance(kind, pa.StructType):
        return tuple(python_value(value[field.name], field.type) for field in kind)
    if isinstance(kind, pa.MapType):
        return {key: python_value(item, kind.item_type) for key, item in value}
    if isinstance(kind, pa.ListType):
        return [python_value(item, kind.value_type) for item in value]
    return value
