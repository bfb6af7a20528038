"""The format of the input of `headgate produce`. Imports nothing, so that `headgate --help` is fast."""

from dataclasses import dataclass
from enum import StrEnum


class InputFormat(StrEnum):
    LINES = "lines"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class RowFormat:
    kind: InputFormat = InputFormat.LINES
    key_column: str | None = None
    separator: str = ","
    """The separator of CSV."""
