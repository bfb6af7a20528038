"""Column functions for PySpark 3.5 and 4.0, which support pandas but not Arrow arrays.

pandas series can contain Arrow arrays (`ArrowDtype`), which PySpark unwraps again. Values must stay in Arrow: pandas
treats NaN as null, also inside lists, maps and structs.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow import lib as pa
    from pyspark.sql.types import DataType


@cache
def _unconverted_array() -> Any:
    """An Arrow array for pandas. PySpark maps a Python function over nested values; the result is the unchanged array.

    PySpark would convert maps to lists of pairs and timestamps to UTC, which Arrow arrays do not need.
    """
    import pandas as pd

    class UnconvertedArray(pd.arrays.ArrowExtensionArray):
        def map(self, mapper: object, na_action: object = None) -> "UnconvertedArray":
            return self

    return UnconvertedArray


def pandas_function(function: "Callable[[Iterator[pa.Array]], Iterator[pa.Array]]", kind: "DataType") -> Any:
    import pandas as pd
    from pyarrow import lib as pa
    from pyspark.sql.pandas.functions import pandas_udf
    from pyspark.sql.types import StructType

    def arrays_of(series: Iterator[pd.Series]) -> Iterator[pa.Array]:
        for one in series:
            yield pa.array(one, pa.binary(), from_pandas=True)

    def wrapped(array: pa.Array) -> pd.Series:
        return pd.Series(_unconverted_array()(array))

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
