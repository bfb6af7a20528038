"""`headgate schema export|import`: all data of a registry as JSON lines."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import IO, Annotated

import typer

from headgate.gateway.cli.errors import UsageError
from headgate.gateway.cli.options import DEFAULT_REGISTRY_URL, Json, RegistryUrl
from headgate.gateway.cli.output import Progress, print_json, say
from headgate.gateway.cli.schema.connection import registry_at
from headgate.gateway.cli.schema.schema_file import Source

_CHUNK_BYTES = 64 * 1024


def export_(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="A file, or - for stdout.", allow_dash=True)] = Path(
        "-"
    ),
    prefix: Annotated[str, typer.Option("--prefix", help="Prefix of the subject names.")] = ":*:",
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
) -> None:
    """Export all schemas, ids, versions, soft-deleted versions and settings as JSON lines."""
    from headgate.gateway.schemas.registry_api import refused

    lines = 0
    with (
        registry_at(registry) as api,
        api.client.stream("GET", "/export", params={"subjectPrefix": prefix}) as answer,
        Progress("lines") as progress,
    ):
        if not answer.is_success:
            answer.read()
            raise refused(answer)
        with nullcontext(sys.stdout.buffer) if str(target) == "-" else open(target, "wb") as file:
            for chunk in answer.iter_bytes():
                lines += chunk.count(b"\n")
                file.write(chunk)
                progress.update(lines)
            file.flush()
    say(f"{lines} lines written")


def import_(source: Source, json: Json = False, registry: RegistryUrl = DEFAULT_REGISTRY_URL) -> None:
    """Import an export with its ids, atomically."""
    headers = {"content-type": "application/x-ndjson"}
    with ExitStack() as stack:
        if str(source) == "-":
            file, total = sys.stdin.buffer, None
        else:
            try:
                file = stack.enter_context(open(source, "rb"))
            except OSError as error:
                raise UsageError(f"cannot read {source}", why=str(error)) from error
            total = os.fstat(file.fileno()).st_size
        progress = stack.enter_context(Progress("bytes sent", total))
        api = stack.enter_context(registry_at(registry))
        done = api.ask("POST", "import", content=_chunks(file, progress), headers=headers, timeout=None)
    if json:
        print_json(done)
    say(f"{done['versions']} versions, {done['configs']} configurations and {done['modes']} modes imported")


def _chunks(file: IO[bytes], progress: Progress) -> Iterator[bytes]:
    sent = 0
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk
        sent += len(chunk)
        progress.update(sent)
