from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes.columnar.memory import as_arrow, is_valid


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.int64, np.float64])
def test_numbers_become_an_arrow_array(kind: type[Any]) -> None:
    numbers: NDArray[Any] = np.arange(20).astype(kind)
    assert as_arrow(numbers).equals(pa.array(numbers))
    assert as_arrow(numbers[::2]).equals(pa.array(numbers[::2].copy()))
    for nulls in (numbers > 30, numbers % 3 == 0, numbers < 30):
        converted = as_arrow(numbers, nulls)
        converted.validate(full=True)
        assert converted.equals(pa.array(numbers, mask=nulls))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([b"a", None] * 9 + [b"b"]),
        pa.array([1, 2]),
        pa.nulls(5, pa.string()),
        pa.nulls(5),
        pa.array([], pa.int8()),
    ],
)
def test_validity_agrees_with_arrow_for_every_slice(array: pa.Array) -> None:
    for start in range(len(array) + 1):
        for rows in range(len(array) - start + 1):
            part = array.slice(start, rows)
            assert is_valid(part).tolist() == [value is not None for value in part.to_pylist()]
