"""Functions of payloads where PySpark has only those on pandas (4.0): the same arrays, wrapped and unwrapped.

pandas carries Arrow arrays as they are (`ArrowDtype`), and PySpark asks each series for its Arrow array again; but a
struct, a list or a map it walks through in Python, so these go as Python's own. It works, and is much slower than
`spark_udfs.frame`, which needs no pandas in any version.
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

    given = pa.binary()

    def arrays_of(series: Iterator[pd.Series]) -> Iterator[pa.Array]:
        for one in series:
            yield pa.array(one, given, from_pandas=True)

    def wrapped(array: pa.Array) -> pd.Series:
        if kinds.is_nested(array.type):
            return pd.Series([plain(value, array.type) for value in array.to_pylist()], dtype=object)
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


def plain(value: Any, kind: "pa.DataType") -> Any:
    """As PySpark walks through it: Arrow gives maps as pairs."""
    import pyarrow.types as kinds

    if value is None:
        return None
    if kinds.is_struct(kind):
        return {field.name: plain(value[field.name], field.type) for field in kind}
    if kinds.is_map(kind):
        return {key: plain(item, kind.item_type) for key, item in value}
    if kinds.is_list(kind):
        return [plain(item, kind.value_type) for item in value]
    return value
