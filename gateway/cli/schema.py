"""`headgate schema …`: the registry from the command line, over its HTTP API, ours or Confluent's.

Data goes to stdout, talk to stderr. Exit codes: 0 done, 1 failed, 2 usage, 3 the answer is no (incompatible, not
found), 4 the registry cannot be reached.
"""

import difflib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn
from urllib.parse import quote

import typer

from headgate.gateway.settings.masking import masked, masked_value
from headgate.gateway.settings.registry_address import InvalidRegistryAddress, parse_address

if TYPE_CHECKING:
    import httpx

FAILED: Final = 1
USAGE: Final = 2
NO: Final = 3
UNREACHABLE: Final = 4
_TIMEOUT_SECONDS: Final = 60.0
_LANGUAGES: Final = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}

app = typer.Typer(
    name="schema",
    help="Schemas: list, get, register, check, diff, delete, configure, copy.",
    no_args_is_help=True,
    add_completion=False,
)

Url = Annotated[
    str,
    typer.Option("--registry", envvar="HEADGATE_REGISTRY_URL", help="The registry's address.", show_default=True),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DEFAULT_URL: Final = "http://127.0.0.1:8081"


def say(text: str) -> None:
    typer.echo(masked(text), err=True)


def stop(code: int, text: str) -> NoReturn:
    say(text)
    raise typer.Exit(code)


@contextmanager
def _reaching(url: str) -> Iterator["httpx.Client"]:
    # Late, because it takes longer to import than `headgate --help` may take in all.
    import httpx

    shown = masked_value(url)
    try:
        address = parse_address(url)
        with httpx.Client(base_url=address.url, auth=address.credentials, timeout=_TIMEOUT_SECONDS) as client:
            yield client
    except httpx.TransportError as error:
        stop(
            UNREACHABLE,
            f"The registry at {shown} cannot be reached: {error}. Is it running? --registry names another one.",
        )
    except (InvalidRegistryAddress, httpx.InvalidURL) as error:
        stop(USAGE, f"--registry {shown} is not a URL: {error}.")


def _ask(client: "httpx.Client", method: str, path: str, **options: Any) -> Any:
    """The answer's JSON; a refusal ends the program with its sentence."""
    answer = client.request(method, path, **options)
    if answer.is_success:
        return answer.json() if answer.content else None
    try:
        message = answer.json()["message"]
    except (ValueError, KeyError, TypeError):
        message = answer.text.strip() or answer.reason_phrase
    stop(NO if answer.status_code in (404, 409) else FAILED, str(message))


def _path(*parts: str) -> str:
    return "/" + "/".join(quote(part, safe=":.") for part in parts)


def _print(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _text(source: Path) -> str:
    try:
        return sys.stdin.read() if str(source) == "-" else source.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        stop(USAGE, f"{source} cannot be read: {error}")


def _body(source: Path, language: str | None, references: list[str]) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": _text(source)}
    body["schemaType"] = (language or _LANGUAGES.get(source.suffix, "AVRO")).upper()
    found = []
    for reference in references:
        name, _, rest = reference.partition("=")
        subject, _, version = rest.rpartition("@")
        if not (name and subject and version.lstrip("-").isdigit()):
            stop(USAGE, f"--reference is NAME=SUBJECT@VERSION, not {reference}")
        found.append({"name": name, "subject": subject, "version": int(version)})
    if found:
        body["references"] = found
    return body


Language = Annotated[str | None, typer.Option("--type", help="AVRO, JSON or PROTOBUF; else by the file's name.")]
References = Annotated[list[str], typer.Option("--reference", help="NAME=SUBJECT@VERSION, once for each.")]
Source = Annotated[Path, typer.Argument(help="A file, or - for stdin.", allow_dash=True)]
Subject = Annotated[str, typer.Argument(help="The subject; `:.context:name` in a context.")]


@app.command("list")
def list_subjects(
    prefix: Annotated[str, typer.Argument(help="The start of their names.")] = ":*:",
    deleted: Annotated[bool, typer.Option("--deleted", help="Soft-deleted ones too.")] = False,
    as_json: AsJson = False,
    registry: Url = DEFAULT_URL,
) -> None:
    """List subjects with their latest versions."""
    with _reaching(registry) as client:
        shown = _ask(
            client,
            "GET",
            "/schemas",
            params={"subjectPrefix": prefix, "latestOnly": "true", "deleted": str(deleted).lower(), "limit": 20000},
        )
    if as_json:
        _print(shown)
        return
    for one in shown:
        typer.echo(f"{one['subject']}\t{one['version']}\t{one['id']}\t{one.get('schemaType', 'AVRO')}")


@app.command()
def get(
    subject: Annotated[str, typer.Argument(help="The subject, or with --id an id.")],
    version: Annotated[str, typer.Argument(help="A number or latest.")] = "latest",
    by_id: Annotated[bool, typer.Option("--id", help="The first argument is an id.")] = False,
    form: Annotated[str, typer.Option("--format", help="resolved, serialized.")] = "",
    as_json: AsJson = False,
    registry: Url = DEFAULT_URL,
) -> None:
    """Print the text of a schema."""
    path = _path("schemas", "ids", subject) if by_id else _path("subjects", subject, "versions", version)
    with _reaching(registry) as client:
        found = _ask(client, "GET", path, params={"format": form} if form else None)
    if as_json:
        _print(found)
    else:
        typer.echo(found["schema"])


@app.command()
def register(
    subject: Subject,
    source: Source,
    language: Language = None,
    references: References = [],  # noqa: B006 - typer reads the default
    normalize: Annotated[bool, typer.Option("--normalize", help="Register its normal form.")] = False,
    as_json: AsJson = False,
    registry: Url = DEFAULT_URL,
) -> None:
    """Register a schema and print its id."""
    body = _body(source, language, references)
    with _reaching(registry) as client:
        done = _ask(
            client,
            "POST",
            _path("subjects", subject, "versions"),
            json=body,
            params={"normalize": "true"} if normalize else None,
        )
    if as_json:
        _print(done)
    else:
        typer.echo(done["id"])


@app.command()
def check(
    subject: Subject,
    source: Source,
    version: Annotated[str, typer.Option("--version", help="Against one version instead of all that count.")] = "",
    language: Language = None,
    references: References = [],  # noqa: B006 - typer reads the default
    as_json: AsJson = False,
    registry: Url = DEFAULT_URL,
) -> None:
    """Would this schema be registered? Exits 3 and says why if not."""
    body = _body(source, language, references)
    parts = ("compatibility", "subjects", subject, "versions", *((version,) if version else ()))
    with _reaching(registry) as client:
        found = _ask(client, "POST", _path(*parts), json=body, params={"verbose": "true"})
    if as_json:
        _print(found)
    elif not found["is_compatible"]:
        listed = found.get("incompatibilities")
        for one in listed or ():
            typer.echo(f"{one['kind']} {one['path']} (version {one['version']}, {one['direction']}): {one['message']}")
            if one.get("advice"):
                typer.echo(f"  {one['advice']}")
        if not listed:
            for message in found.get("messages") or ():
                typer.echo(message)
    if not found["is_compatible"]:
        stop(NO, f"Not compatible with {subject}.")
    say(f"Compatible with {subject}.")


@app.command()
def diff(
    subject: Subject,
    old: Annotated[str, typer.Argument(help="A version.")],
    new: Annotated[str, typer.Argument(help="A version.")] = "latest",
    as_json: AsJson = False,
    registry: Url = DEFAULT_URL,
) -> None:
    """Show what changed between two versions; exits 3 if something did."""
    with _reaching(registry) as client:
        texts = [
            _ask(client, "GET", _path("subjects", subject, "versions", version))["schema"] for version in (old, new)
        ]
    before, after = ([f"{line}\n" for line in _pretty(text).splitlines()] for text in texts)
    lines = list(difflib.unified_diff(before, after, f"{subject} {old}", f"{subject} {new}"))
    if as_json:
        _print({"subject": subject, "old": old, "new": new, "diff": "".join(lines)})
    else:
        typer.echo("".join(lines), nl=False)
    if lines:
        raise typer.Exit(NO)


def _pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except ValueError:
        return text


@app.command()
def delete(
    subject: Subject,
    version: Annotated[str, typer.Argument(help="A version; all without it.")] = "",
    permanent: Annotated[bool, typer.Option("--permanent", help="Remove what is soft-deleted.")] = False,
    yes: Yes = False,
    registry: Url = DEFAULT_URL,
) -> None:
    """Delete a subject or one of its versions."""
    from headgate.gateway.cli.confirmation import confirm
    from headgate.gateway.cli.errors import UsageError

    what = f"version {version} of {subject}" if version else subject
    try:
        sure = confirm(f"Delete {what}{' permanently' if permanent else ''}?", yes=yes)
    except UsageError as error:
        stop(USAGE, f"{error.what}: {error.next_step}.")
    if not sure:
        stop(FAILED, "Nothing was deleted.")
    parts = ("subjects", subject, *(("versions", version) if version else ()))
    with _reaching(registry) as client:
        done = _ask(client, "DELETE", _path(*parts), params={"permanent": "true"} if permanent else None)
    typer.echo(json.dumps(done))


@app.command()
def config(
    subject: Annotated[str, typer.Argument(help="A subject or `:.context:`; the registry without it.")] = "",
    level: Annotated[str, typer.Option("--level", help="Set the compatibility level.")] = "",
    unset: Annotated[bool, typer.Option("--unset", help="Delete the configuration.")] = False,
    registry: Url = DEFAULT_URL,
) -> None:
    """Show or set configuration."""
    path = _path("config", *((subject,) if subject else ()))
    with _reaching(registry) as client:
        if unset:
            shown = _ask(client, "DELETE", path)
        elif level:
            shown = _ask(client, "PUT", path, json={"compatibility": level})
        else:
            shown = _ask(client, "GET", path, params={"defaultToGlobal": "true"})
    _print(shown)


@app.command()
def mode(
    subject: Annotated[str, typer.Argument(help="A subject or `:.context:`; the registry without it.")] = "",
    new: Annotated[str, typer.Option("--set", help="READWRITE, READONLY, READONLY_OVERRIDE, IMPORT or FORWARD.")] = "",
    force: Annotated[bool, typer.Option("--force", help="IMPORT although there are subjects.")] = False,
    unset: Annotated[bool, typer.Option("--unset", help="Delete the mode.")] = False,
    registry: Url = DEFAULT_URL,
) -> None:
    """Show or set the mode."""
    path = _path("mode", *((subject,) if subject else ()))
    with _reaching(registry) as client:
        if unset:
            shown = _ask(client, "DELETE", path)
        elif new:
            shown = _ask(client, "PUT", path, json={"mode": new}, params={"force": "true"} if force else None)
        else:
            shown = _ask(client, "GET", path, params={"defaultToGlobal": "true"})
    _print(shown)


@app.command("export")
def export_(
    target: Annotated[Path, typer.Argument(help="A file, or - for stdout.", allow_dash=True)] = Path("-"),
    prefix: Annotated[str, typer.Option("--prefix", help="The start of the subjects' names.")] = ":*:",
    registry: Url = DEFAULT_URL,
) -> None:
    """Write everything as lines of JSON: ids, versions, soft-deleted ones, settings."""
    lines = 0
    with (
        _reaching(registry) as client,
        client.stream("GET", "/export", params={"subjectPrefix": prefix}) as answer,
    ):
        if not answer.is_success:
            answer.read()
            stop(FAILED, answer.text)
        with nullcontext(sys.stdout.buffer) if str(target) == "-" else open(target, "wb") as file:
            for chunk in answer.iter_bytes():
                lines += chunk.count(b"\n")
                file.write(chunk)
            file.flush()
    say(f"{lines} lines written.")


@app.command("import")
def import_(source: Source, as_json: AsJson = False, registry: Url = DEFAULT_URL) -> None:
    """Take the lines of an export, all or none, with their ids."""
    if str(source) == "-":
        content: Any = sys.stdin.buffer.read()
    else:
        try:
            content = source.read_bytes()
        except OSError as error:
            stop(USAGE, f"{source} cannot be read: {error}")
    with _reaching(registry) as client:
        done = _ask(
            client,
            "POST",
            "/import",
            content=content,
            headers={"content-type": "application/x-ndjson"},
            timeout=None,
        )
    if as_json:
        _print(done)
    say(f"{done['versions']} versions, {done['configs']} configurations and {done['modes']} modes taken.")
