"""Column functions for PySpark 4.0, which supports pandas but not Arrow arrays.

pandas series can contain Arrow arrays (`ArrowDtype`), which PySpark unwraps again. Structs, lists and maps are
converted to Python values. This is much slower than `spark_udfs.frame`, which does not need pandas in any version.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow import lib as pa
    from pyspark.sql.types import DataType


def pandas_function(function: "Callable[[Iterator[pa.Array]], Iterator[pa.Array]]", kind: "DataType") -> Any:
    import pandas as pd
    import pyarrow.types as kinds
    from pyarrow import lib as pa
    from pyspark.sql.pandas.functions import pandas_udf
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.executor.python_values import python_value

    def arrays_of(series: Iterator[pd.Series]) -> Iterator[pa.Array]:
        for one in series:
            yield pa.array(one, pa.binary(), from_pandas=True)

    def wrapped(array: pa.Array) -> pd.Series:
        if kinds.is_nested(array.type):
            return pd.Series([python_value(value, array.type) for value in array.to_pylist()], dtype=object)
        return pd.Series(pd.arrays.ArrowExtensionArray(array))

    make: Any = pandas_udf
    if not isinstance(kind, StructType):

        def to_series(series: Iterator[pd.Series]) -> Iterator[pd.Series]:
            for array in function(arrays_of(series)):
                yield wrapped(array)

        return make(to_series, returnType=kind)

    def to_frames(series: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
        for array in function(arrays_of(series)):
            names = [array.type.field(at).name for at in range(array.type.num_fields)]
            yield pd.DataFrame({name: wrapped(column) for name, column in zip(names, array.flatten(), strict=True)})

    return make(to_frames, returnType=kind)
