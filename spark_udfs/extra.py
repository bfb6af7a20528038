"""What `spark_udfs` needs beyond the base installation, and the error that says so."""

from importlib.util import find_spec

NEEDED = ("pyspark", "pyarrow", "numpy")


class MissingExtra(ImportError):
    """The Spark side was not installed."""


def need_spark() -> None:
    """Called first by whatever a user calls. Raises `MissingExtra`."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"{' and '.join(missing)} not installed; pip install 'headgate[spark]'")
