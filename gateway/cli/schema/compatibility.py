"""`headgate schema register|check|diff`: new versions and their compatibility."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.gateway.cli.completion import complete_subject
from headgate.gateway.cli.errors import AnswerIsNo, ExitCode, UsageError
from headgate.gateway.cli.options import DEFAULT_REGISTRY_URL, Json, RegistryUrl
from headgate.gateway.cli.output import print_json, print_table, say
from headgate.gateway.cli.schema.as_code import check_against
from headgate.gateway.cli.schema.connection import registry_at
from headgate.gateway.cli.schema.findings import print_answer
from headgate.gateway.cli.schema.schema_file import Language, References, Source, SubjectName, body_of

if TYPE_CHECKING:
    from headgate.gateway.schemas.registry_api import RegistryApi, StoredSchema
    from headgate.registry.evolution import Evolution, SchemaChange
    from headgate.registry.model import Level


def register(
    subject: SubjectName,
    source: Source,
    language: Language = None,
    references: References = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Normalize the schema first.")] = False,
    json: Json = False,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
) -> None:
    """Register a schema and print its id. Exits with code 3 and the reasons if it is not compatible."""
    from headgate.gateway.schemas.registry_api import CONFLICT, RegistryRefused

    body = body_of(source, language, references)
    parameters = {"normalize": "true"} if normalize else None
    with registry_at(registry) as api:
        try:
            done = api.ask("POST", "subjects", subject, "versions", json=body, params=parameters)
        except RegistryRefused as error:
            if error.status != CONFLICT:
                raise
            found = _checked(api, subject, "", body)
            if found["is_compatible"]:
                # Another conflict, for example with an association.
                raise
            if json:
                print_json(found)
            print_answer(found, say)
            raise _not_compatible(subject, "not registered", source) from error
    if json:
        print_json(done)
    else:
        print(done["id"])
    say(f"subject {subject}: registered with id {done['id']}")


def check(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="SUBJECT|DIR",
            help="The subject; with --against, a folder [default: the working directory].",
            autocompletion=complete_subject,
        ),
    ] = "",
    source: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A file, or - for stdin.", allow_dash=True)
    ] = None,
    against: Annotated[
        str,
        typer.Option(
            "--against",
            metavar="git:REVISION",
            help="Compare a folder of schemas with a git revision, without a registry.",
        ),
    ] = "",
    version: Annotated[str, typer.Option("--version", help="Check against one version only.")] = "",
    language: Language = None,
    references: References = None,
    json: Json = False,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
) -> None:
    """Check whether a schema, or a folder of schemas, is compatible. Exits with code 3 and the reasons if not."""
    if against:
        if source is not None or version or language or references:
            raise UsageError("--against compares a folder", next_step=f"headgate schema check --against {against} DIR")
        check_against(Path(subject or "."), against, json=json)
        return
    if not subject or source is None:
        raise UsageError("a subject and a file are missing", next_step="headgate schema check SUBJECT FILE")
    body = body_of(source, language, references)
    with registry_at(registry) as api:
        found = _checked(api, subject, version, body)
    if json:
        print_json(found)
    elif not found["is_compatible"]:
        print_answer(found, print)
    if not found["is_compatible"]:
        raise _not_compatible(subject, "not compatible", source)
    say(f"compatible with {subject}")


def _checked(api: "RegistryApi", subject: str, version: str, body: dict[str, Any]) -> dict[str, Any]:
    path = ("compatibility", "subjects", subject, "versions", *((version,) if version else ()))
    found: dict[str, Any] = api.ask("POST", *path, json=body, params={"verbose": "true"})
    return found


def _not_compatible(subject: str, what: str, source: Path) -> AnswerIsNo:
    return AnswerIsNo(
        f"{what}: the schema is not compatible with {subject}",
        next_step=f"headgate schema diff {subject} {source} lists all changes",
    )


def diff(
    subject: SubjectName,
    old: Annotated[
        str, typer.Argument(help="A version, or a file to compare with the latest version [default: the previous one].")
    ] = "",
    new: Annotated[str, typer.Argument(help="A version or a file [default: the latest version].")] = "",
    level: Annotated[str, typer.Option("--level", help="Compatibility level [default: the subject's].")] = "",
    language: Language = None,
    references: References = None,
    json: Json = False,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
) -> None:
    """List the changes between two versions, or between a version and a file, and what each of them breaks.

    Exits with code 0 if the schemas are equal, 5 if all changes are compatible at the level, 3 if not.
    """
    from headgate.registry.compatibility.incompatibility import Policy
    from headgate.registry.evolution import compare

    if old and not new:
        old, new = (old, "latest") if _is_version(old) else ("latest", old)
    if old and not _is_version(old):
        raise UsageError(f"{old} is not a version", next_step=f"headgate schema versions {subject} lists them")
    with registry_at(registry) as api:
        if not old:
            old, new = _last_two(api, subject)
        before = api.stored(subject, old)
        if _is_version(new):
            stored = api.stored(subject, new)
            after, name = stored.schema, str(stored.version)
        else:
            after, name = _in_file(api, subject, Path(new), language, references), new
        config = api.ask("GET", "config", subject, params={"defaultToGlobal": "true"})
        judged = _level(level or str(config.get("compatibilityLevel", "BACKWARD")))
        policy = Policy(config.get("compatibilityPolicy") or Policy.STRICT)
        evolution = compare(api.languages, before.schema, after, policy)
    result = "breaking" if evolution.breaks(judged) else "compatible" if evolution.changes else "same"
    if json:
        print_json(_document(subject, before, name, judged, result, evolution))
    else:
        print_evolution(evolution, before.version)
    between = f"version {before.version} and {'version ' if _is_version(new) else ''}{name}"
    say(f"{subject}, {between}: {_summary(result, judged, evolution)}")
    if result != "same":
        raise typer.Exit(ExitCode.ANSWER_IS_NO if result == "breaking" else ExitCode.CHANGED)


def _is_version(text: str) -> bool:
    return text == "latest" or (text.isascii() and text.isdigit())


def _last_two(api: "RegistryApi", subject: str) -> tuple[str, str]:
    numbers = api.ask("GET", "subjects", subject, "versions")
    if len(numbers) < 2:
        raise AnswerIsNo(
            f"subject {subject} has only version {numbers[0]}",
            next_step=f"headgate schema diff {subject} FILE compares it with a file",
        )
    return str(numbers[-2]), str(numbers[-1])


def _in_file(api: "RegistryApi", subject: str, file: Path, language: str | None, references: list[str] | None) -> Any:
    from headgate.gateway.schemas.registry_api import references_of
    from headgate.registry.model import SchemaType

    body = body_of(file, language, references)
    return api.parse(subject, SchemaType(body["schemaType"]), body["schema"], references_of(body))


def _level(text: str) -> "Level":
    from headgate.registry.model import Level

    try:
        return Level(text.upper())
    except ValueError:
        raise UsageError(f"{text} is not a compatibility level", next_step=f"use {', '.join(Level)}") from None


def _summary(result: str, level: "Level", evolution: "Evolution") -> str:
    if result == "same":
        return "no changes"
    count = len(evolution.changes)
    noun = "change" if count == 1 else "changes" if evolution.is_complete else "or more changes"
    return f"{count} {noun}, {result if result == 'compatible' else 'not compatible'} at level {level}"


def _document(
    subject: str, before: "StoredSchema", new: str, level: "Level", result: str, evolution: "Evolution"
) -> dict[str, Any]:
    return {
        "subject": subject,
        "old": str(before.version),
        "new": new,
        "level": level,
        "result": result,
        "complete": evolution.is_complete,
        "changes": [
            {
                "change": one.kind,
                "path": one.path,
                "old": one.old,
                "new": one.new,
                "breaks_backward": bool(one.backward),
                "breaks_forward": bool(one.forward),
                "incompatibilities": _reasons(one, before.version),
            }
            for one in evolution.changes
        ],
    }


def print_evolution(evolution: "Evolution", version: int) -> None:
    """A table of all changes, then the reasons of those that break compatibility."""
    if not evolution.changes:
        return
    headings = ["CHANGE", "PATH", "OLD", "NEW", "BACKWARD", "FORWARD"]
    rows = [
        [one.kind, one.path or None, one.old or None, one.new or None, _verdict(one.backward), _verdict(one.forward)]
        for one in evolution.changes
    ]
    print_table(headings, rows)
    reasons = [reason for one in evolution.changes for reason in _reasons(one, version)]
    if reasons:
        print()
        print_answer({"incompatibilities": reasons}, print)


def _reasons(change: "SchemaChange", version: int) -> list[dict[str, Any]]:
    """In the form of the registry's answer."""
    from headgate.registry.compatibility.levels import Found

    found = [Found(version, True, one) for one in change.backward] + [
        Found(version, False, one) for one in change.forward
    ]
    return [one.as_json() for one in found]


def _verdict(found: tuple[object, ...]) -> str:
    return "breaks" if found else "ok"
