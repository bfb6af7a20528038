from collections.abc import Iterator

import pytest

from headgate.spark_udfs.executor.decoding import decoder_of


@pytest.fixture(autouse=True)
def _no_decoder_of_another_test() -> Iterator[None]:
    """Clear the decoder cache: cached schemas belong to the registry of one test."""
    decoder_of.cache_clear()
    yield
    decoder_of.cache_clear()
