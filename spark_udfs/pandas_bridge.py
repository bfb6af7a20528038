"""Arrow functions where PySpark has only those on pandas (4.0): the same arrays, wrapped and unwrapped.

pandas carries Arrow arrays as they are (`ArrowDtype`), and PySpark asks each series for its Arrow array again, so that
no value becomes a Python object on the way out. On the way in PySpark makes Python bytes of the payloads: it is slower.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow import lib as pa
    from pyspark.sql.types import DataType


def pandas_function(function: "Callable[[Iterator[pa.Array]], Iterator[pa.Array]]", kind: "DataType") -> Any:
    import pandas as pd
    from pyarrow import lib as pa
    from pyspark.sql.pandas.functions import pandas_udf
    from pyspark.sql.types import StructType

    given = pa.binary()

    def arrays_of(series: Iterator[pd.Series]) -> Iterator[pa.Array]:
        for one in series:
            yield pa.array(one, given, from_pandas=True)

    def wrapped(array: pa.Array) -> pd.Series:
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
