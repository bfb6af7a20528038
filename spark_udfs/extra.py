"""Check that the optional dependencies of `spark_udfs` are installed."""

from importlib.util import find_spec

NEEDED = ("pyspark", "pyarrow", "numpy")


class MissingExtra(ImportError):
    """The extra `headgate[spark]` is not installed."""


def need_spark() -> None:
    """Every public function calls this first. Raises `MissingExtra`."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"{' and '.join(missing)} not installed; run pip install 'headgate[spark]'")
