"""A schema in a file or on standard input, as options and as the body of a request."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from headgate.gateway.cli.completion import complete_subject
from headgate.gateway.cli.errors import UsageError

if TYPE_CHECKING:
    from headgate.registry.model import Reference

# A schema has at most 1,048,576 characters (`registry.limits`, which would slow down `--help`) of up to four bytes.
BYTES_MAX: Final = 4 * 1024 * 1024
LANGUAGES: Final = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
Language: TypeAlias = Annotated[
    str | None, typer.Option("--type", help="AVRO, JSON or PROTOBUF [default: from the file name].")
]
References: TypeAlias = Annotated[
    list[str] | None, typer.Option("--reference", metavar="NAME=SUBJECT@VERSION", help="A reference; repeatable.")
]
Source: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="A file, or - for stdin.", allow_dash=True)]
SubjectName: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="SUBJECT", help="The subject; `:.context:name` in a context.", autocompletion=complete_subject
    ),
]


def read_text(source: Path) -> str:
    """Raises UsageError."""
    try:
        with nullcontext(sys.stdin.buffer) if str(source) == "-" else open(source, "rb") as file:
            content = file.read(BYTES_MAX + 1)
        if len(content) > BYTES_MAX:
            raise UsageError(f"{source} is larger than {BYTES_MAX} bytes")
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {source}", why=str(error)) from error


def body_of(source: Path, language: str | None, references: list[str] | None) -> dict[str, Any]:
    """The body of a registration. Raises UsageError."""
    kind = (language or LANGUAGES.get(source.suffix, "AVRO")).upper()
    if kind not in LANGUAGES.values():
        raise UsageError(f"--type {language} is not a schema language", next_step="use AVRO, JSON or PROTOBUF")
    body: dict[str, Any] = {"schema": read_text(source), "schemaType": kind}
    if references:
        body["references"] = [
            {"name": one.name, "subject": one.subject, "version": one.version} for one in map(_reference, references)
        ]
    return body


def _reference(text: str) -> "Reference":
    from headgate.registry.model import Reference

    name, _, rest = text.partition("=")
    subject, _, version = rest.rpartition("@")
    if not (name and subject and version.isascii() and version.lstrip("-").isdigit()):
        raise UsageError(
            f"--reference {text} is not NAME=SUBJECT@VERSION", next_step="--reference com.example.Money=money-value@1"
        )
    return Reference(name, subject, int(version))
