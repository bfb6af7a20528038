"""`headgate schema`: a client of the registry's HTTP API, which also works with Confluent's registry.

Data goes to stdout, messages go to stderr. Exit codes: 0 success, 1 failure, 2 usage error, 3 negative result
(incompatible, not found), 4 registry unreachable.
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
    # Imported late: it would slow down `headgate --help`.
    import httpx

    shown = masked_value(url)
    try:
        address = parse_address(url)
        with httpx.Client(base_url=address.url, auth=address.credentials, timeout=_TIMEOUT_SECONDS) as client:
            yield client
    except httpx.TransportError as error:
        stop(
            UNREACHABLE,
            f"The registry at {shown} cannot be reached: {error}. Check that it is running, or use --registry.",
        )
    except (InvalidRegistryAddress, httpx.InvalidURL) as error:
        stop(USAGE, f"--registry {shown} is not a URL: {error}.")


def _ask(client: "httpx.Client", method: str, path: str, **options: Any) -> Any:
    """The JSON of the response. An error response ends the program with its message."""
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


Language = Annotated[str | None, typer.Option("--type", help="AVRO, JSON or PROTOBUF [default: from the file name].")]
References = Annotated[list[str], typer.Option("--reference", help="NAME=SUBJECT@VERSION; repeatable.")]
Source = Annotated[Path, typer.Argument(help="A file, or - for stdin.", allow_dash=True)]
Subject = Annotated[str, typer.Argument(help="The subject; `:.context:name` in a context.")]


@app.command("list")
def list_subjects(
    prefix: Annotated[str, typer.Argument(help="Prefix of the subject names.")] = ":*:",
    deleted: Annotated[bool, typer.Option("--deleted", help="Include soft-deleted subjects.")] = False,
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
    subject: Annotated[str, typer.Argument(help="Subject, or schema id with --id.")],
    version: Annotated[str, typer.Argument(help="A number or latest.")] = "latest",
    by_id: Annotated[bool, typer.Option("--id", help="The first argument is a schema id.")] = False,
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
    normalize: Annotated[bool, typer.Option("--normalize", help="Normalize the schema first.")] = False,
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
    version: Annotated[str, typer.Option("--version", help="Check against one version only.")] = "",
    language: Language = None,
    references: References = [],  # noqa: B006 - typer reads the default
    as_json: AsJson = False,
    registry: Url = DEFAULT_URL,
) -> None:
    """Check whether a schema is compatible. Exits with code 3 and the reasons if not."""
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
    """Show the difference between two versions. Exits with code 3 if they differ."""
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
    version: Annotated[str, typer.Argument(help="A version [default: all].")] = "",
    permanent: Annotated[bool, typer.Option("--permanent", help="Delete a soft-deleted version permanently.")] = False,
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
    subject: Annotated[str, typer.Argument(help="A subject or `:.context:` [default: the whole registry].")] = "",
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
    subject: Annotated[str, typer.Argument(help="A subject or `:.context:` [default: the whole registry].")] = "",
    new: Annotated[str, typer.Option("--set", help="READWRITE, READONLY, READONLY_OVERRIDE, IMPORT or FORWARD.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Allow IMPORT although subjects exist.")] = False,
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
    prefix: Annotated[str, typer.Option("--prefix", help="Prefix of the subject names.")] = ":*:",
    registry: Url = DEFAULT_URL,
) -> None:
    """Export all schemas, ids, versions, soft-deleted versions and settings as JSON lines."""
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
    """Import an export with its ids, atomically."""
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
    say(f"{done['versions']} versions, {done['configs']} configurations and {done['modes']} modes imported.")
