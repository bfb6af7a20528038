"""The rows of the input of `headgate produce`: lines, JSON, CSV or Parquet."""

from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.gateway.cli.errors import CommandError
from headgate.gateway.cli.input_format import InputFormat, RowFormat
from headgate.gateway.cli.standard_input import chunks
from headgate.gateway.records.csv_input import CsvInput
from headgate.gateway.records.encoding import RecordEncoder
from headgate.gateway.records.input import InputRow, LineFormat, Lines

if TYPE_CHECKING:
    from headgate.gateway.records.parquet_input import ParquetInput


async def open_rows(
    wanted: RowFormat, encoder: RecordEncoder, line_format: LineFormat, files: list[Path], value: bytes | None
) -> AsyncIterator[InputRow]:
    """Raises CommandError, ProxyError. The iterator raises BadRecord if it cannot continue after a row."""
    if wanted.kind is InputFormat.CSV:
        _, schema = await encoder.value_schema()
        return _csv(CsvInput(schema, line_format, wanted.key_column, wanted.separator), files)
    if wanted.kind is InputFormat.PARQUET:
        if find_spec("pyarrow") is None:
            raise CommandError("pyarrow is not installed", next_step="pip install 'headgate[arrow]'")
        from headgate.gateway.records.parquet_input import ParquetInput

        schema_id, schema = await encoder.value_schema()
        return _parquet(ParquetInput(schema, schema_id, line_format, wanted.key_column), files)
    return _lines(line_format, files, value)


async def _lines(line_format: LineFormat, files: list[Path], value: bytes | None) -> AsyncIterator[InputRow]:
    if value is not None:
        yield line_format.row("line 1", value)
        return
    number, lines = 0, Lines()
    async for chunk in chunks(files):
        for line in lines.feed(chunk) if chunk else lines.end():
            number += 1
            yield line_format.row(f"line {number}", line)


async def _csv(csv: CsvInput, files: list[Path]) -> AsyncIterator[InputRow]:
    lines = Lines()
    async for chunk in chunks(files):
        for line in lines.feed(chunk) if chunk else lines.end():
            for row in csv.feed(line):
                yield row
        if not chunk:
            for row in csv.end():
                yield row


async def _parquet(parquet: "ParquetInput", files: list[Path]) -> AsyncIterator[InputRow]:
    for path in files:
        for row in parquet.rows(path):
            yield row
