import pytest

from headgate.serdes.columnar.native.library import LIBRARY
from headgate.serdes.columnar.native.signatures import SIGNATURES


@pytest.fixture(scope="session", autouse=True)
def machine_code() -> None:
    """The default engine runs machine code in these tests. It would run plain Python until the code is compiled."""
    for kernel in SIGNATURES:
        LIBRARY.wait(kernel)
