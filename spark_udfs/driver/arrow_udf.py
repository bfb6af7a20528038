"""Create column functions on Arrow arrays, for every supported PySpark version."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyarrow import lib as pa

from headgate.spark_udfs.compatibility import has_arrow_functions

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def arrow_function(function: Callable[[Iterator[pa.Array]], Iterator[pa.Array]], kind: "DataType") -> Any:
    """A column function from Arrow arrays to Arrow arrays. Before PySpark 4.1 they go through pandas."""
    if not has_arrow_functions():
        from headgate.spark_udfs.executor.pandas_bridge import pandas_function

        return pandas_function(function, kind)
    from pyspark.sql.pandas.functions import arrow_udf

    # PySpark reads the kind of function from the annotations.
    def call(arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
        yield from function(arrays)

    make: Any = arrow_udf
    return make(call, returnType=kind)


def arrow_function_of_pairs(
    function: Callable[[Iterator[tuple[pa.Array, pa.Array]]], Iterator[pa.Array]], kind: "DataType"
) -> Any:
    """A column function of two columns. Needs PySpark 4.1."""
    from pyspark.sql.pandas.functions import arrow_udf

    def call(pairs: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        yield from function(pairs)

    make: Any = arrow_udf
    return make(call, returnType=kind)
