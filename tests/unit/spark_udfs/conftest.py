from collections.abc import Iterator

import pytest

from headgate.spark_udfs.executor.decoding import decoder_of


@pytest.fixture(autouse=True)
def _no_decoder_of_another_test() -> Iterator[None]:
    """A process keeps its decoders, and what they learnt of one test's registry is not true in the next."""
    decoder_of.cache_clear()
    yield
    decoder_of.cache_clear()
