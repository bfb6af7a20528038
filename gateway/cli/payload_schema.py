"""The schema options of `headgate produce`."""

from pathlib import Path
from typing import Final

from headgate.gateway.cli.errors import UsageError
from headgate.gateway.cli.schema.schema_file import read_text
from headgate.gateway.records.encoding import PayloadSchema
from headgate.proxy.formats import Format

_LANGUAGES: Final = {".avsc": Format.AVRO, ".json": Format.JSONSCHEMA, ".proto": Format.PROTOBUF}


def payload_schema(
    topic: str, part: str, subject: str | None, file: Path | None, schema_id: int | None
) -> PayloadSchema | None:
    """The schema that the options choose, or None. Raises UsageError."""
    if schema_id is not None and (subject is not None or file is not None):
        raise UsageError(f"--{part}-schema-id already chooses the schema", next_step="remove the other schema options")
    if subject is None and file is None and schema_id is None:
        return None
    used = subject or f"{topic}-{part}"
    if file is None:
        return PayloadSchema(used, schema_id)
    language = _LANGUAGES.get(file.suffix)
    if language is None:
        raise UsageError(
            f"{file}: the file name does not show the schema language", next_step=f"name it {', '.join(_LANGUAGES)}"
        )
    return PayloadSchema(used, text=read_text(file), format=language)
