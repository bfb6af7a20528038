"""The formats of an export. Imports nothing, so that `headgate --help` is fast."""

from enum import StrEnum


class ExportFormat(StrEnum):
    NDJSON = "ndjson"
    PARQUET = "parquet"
    AVRO = "avro"
