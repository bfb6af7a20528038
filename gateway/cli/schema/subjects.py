"""`headgate schema list|versions|get|delete`."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from headgate.gateway.cli.completion import complete_subject
from headgate.gateway.cli.errors import AnswerIsNo
from headgate.gateway.cli.options import DEFAULT_REGISTRY_URL, Json, RegistryUrl, Yes
from headgate.gateway.cli.output import print_json, print_table, say
from headgate.gateway.cli.schema.connection import registry_at
from headgate.gateway.cli.schema.schema_file import SubjectName

Deleted = Annotated[bool, typer.Option("--deleted", help="Include soft-deleted versions.")]


def list_(
    prefix: Annotated[
        str, typer.Argument(help="Prefix of the subject names.", autocompletion=complete_subject)
    ] = ":*:",
    deleted: Deleted = False,
    json: Json = False,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
) -> None:
    """List subjects with their latest versions."""
    with registry_at(registry) as api:
        found = list(api.schemas(prefix, latest_only=True, deleted=deleted))
    if json:
        print_json(found)
        return
    rows = [[one["subject"], one["version"], one["id"], _type(one)] for one in found]
    print_table(["SUBJECT", "VERSION", "ID", "TYPE"], rows, numbers=["VERSION", "ID"])
    if not found:
        say("no subjects; create one with headgate schema register")


def versions(
    subject: SubjectName,
    deleted: Deleted = False,
    json: Json = False,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
) -> None:
    """List the versions of a subject."""
    with registry_at(registry) as api:
        numbers = api.ask("GET", "subjects", subject, "versions", params={"deleted": str(deleted).lower()})
        found = [
            one
            for one in api.schemas(subject, latest_only=False, deleted=deleted)
            if one["subject"] == subject and one["version"] in numbers
        ]
    if json:
        print_json(found)
        return
    rows = [
        [one["version"], one["id"], _type(one), len(one.get("references") or ()), _time(one), _state(one)]
        for one in found
    ]
    headings = ["VERSION", "ID", "TYPE", "REFERENCES", "CREATED", "STATE"]
    print_table(headings, rows, numbers=["VERSION", "ID", "REFERENCES"])


def _type(schema: dict[str, Any]) -> str:
    return str(schema.get("schemaType") or "AVRO")


def _time(schema: dict[str, Any]) -> str | None:
    at = schema.get("ts")
    return None if at is None else f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _state(schema: dict[str, Any]) -> str:
    return "deleted" if schema.get("deleted") else "active"


def get(
    subject: Annotated[
        str,
        typer.Argument(metavar="SUBJECT", help="Subject, or schema id with --id.", autocompletion=complete_subject),
    ],
    version: Annotated[str, typer.Argument(help="A number or latest.")] = "latest",
    by_id: Annotated[bool, typer.Option("--id", help="The first argument is a schema id.")] = False,
    form: Annotated[str, typer.Option("--format", help="resolved, serialized.")] = "",
    json: Json = False,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
) -> None:
    """Print the text of a schema."""
    path = ("schemas", "ids", subject) if by_id else ("subjects", subject, "versions", version)
    with registry_at(registry) as api:
        found = api.ask("GET", *path, params={"format": form} if form else None)
    if json:
        print_json(found)
    else:
        print(found["schema"])


def delete(
    subject: SubjectName,
    version: Annotated[str, typer.Argument(help="A version [default: all].")] = "",
    permanent: Annotated[bool, typer.Option("--permanent", help="Delete a soft-deleted version permanently.")] = False,
    yes: Yes = False,
    json: Json = False,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
) -> None:
    """Delete a subject or one of its versions."""
    from headgate.gateway.cli.confirmation import confirm

    what = f"version {version} of {subject}" if version else subject
    if not confirm(f"delete {what}{' permanently' if permanent else ''}?", yes=yes):
        raise AnswerIsNo("nothing deleted")
    path = ("subjects", subject, *(("versions", version) if version else ()))
    with registry_at(registry) as api:
        done = api.ask("DELETE", *path, params={"permanent": "true"} if permanent else None)
    deleted = done if isinstance(done, list) else [done]
    if json:
        print_json({"subject": subject, "versions": deleted, "permanent": permanent})
    say(f"subject {subject}: version {', '.join(map(str, deleted))} deleted{' permanently' if permanent else ''}")
