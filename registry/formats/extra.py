"""Optional libraries of the schema languages."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Explain a library that is not installed. Raises ImportError."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(f"{error.name} is not installed; run pip install 'headgate[{name}]'") from error
