"""`headgate schema plan|apply` and `check --against git:REVISION`: schemas as files."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.gateway.cli.errors import AnswerIsNo, CommandError, ExitCode, UsageError
from headgate.gateway.cli.options import DEFAULT_REGISTRY_URL, Json, RegistryUrl
from headgate.gateway.cli.output import print_json, print_table, say, visible
from headgate.gateway.cli.schema.connection import registry_at
from headgate.gateway.cli.schema.findings import print_answer

if TYPE_CHECKING:
    from headgate.gateway.schemas.folder import LocalSchema
    from headgate.gateway.schemas.plan import Outcome, Step
    from headgate.registry.languages import Languages

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder with schema files and schemas.toml.")]


def plan(
    folder: Folder = Path("."),
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with code 5 if there are changes.")] = False,
    json: Json = False,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
) -> None:
    """Show what `apply` would register. Exits with code 3 if a schema is invalid or not compatible."""
    from headgate.gateway.schemas.plan import Plan

    with registry_at(registry) as api:
        schemas, unlisted = _loaded(folder, api.languages)
        steps = Plan(api, schemas).steps
    _show(steps, unlisted, json=json)
    _reject(steps)
    if exit_code and any(step.is_change for step in steps):
        raise typer.Exit(ExitCode.CHANGED)


def apply(folder: Folder = Path("."), json: Json = False, registry: RegistryUrl = DEFAULT_REGISTRY_URL) -> None:
    """Register the schemas of a folder and set their levels. If one is rejected, nothing is changed."""
    from headgate.gateway.schemas.plan import Plan

    with registry_at(registry) as api:
        schemas, unlisted = _loaded(folder, api.languages)
        planned = Plan(api, schemas)
        if any(step.is_rejected for step in planned.steps):
            _show(planned.steps, unlisted, json=json)
            _reject(planned.steps)
        outcomes = []
        try:
            for outcome in planned.apply():
                outcomes.append(outcome)
                _say_outcome(outcome)
        finally:
            # Also after a lost connection: everything that was changed is reported.
            if json:
                print_json({"subjects": [_outcome_json(one) for one in outcomes], "unlisted": unlisted})
    failed = [one.step.subject for one in outcomes if one.problem]
    if failed:
        raise CommandError(f"not applied: {', '.join(failed)}", next_step="correct the cause and apply again")
    say(_counted(Counter(one.state for one in outcomes)))


def check_against(folder: Path, against: str, *, json: bool) -> None:
    """Compare the files of the working tree with a git revision, without a registry."""
    from headgate.gateway.schemas.files import MISSING, GitFiles
    from headgate.gateway.schemas.folder import load_folder
    from headgate.gateway.schemas.manifest import NAME
    from headgate.gateway.schemas.plan import compare_folders
    from headgate.registry.languages import Languages

    kind, _, revision = against.partition(":")
    if kind != "git" or not revision:
        raise UsageError(f"--against {against} is not git:REVISION", next_step="--against git:main")
    languages = Languages()
    with _folder_errors():
        new, unlisted = _loaded(folder, languages)
        files = GitFiles(folder, revision)
        old = [] if files.read([NAME])[NAME] == MISSING else load_folder(files, languages)
        steps = list(compare_folders(languages, old, new))
    _show(steps, unlisted, json=json, against=against)
    _reject(steps)


@contextmanager
def _folder_errors() -> Iterator[None]:
    from headgate.gateway.schemas.manifest import InvalidManifest

    try:
        yield
    except InvalidManifest as error:
        raise UsageError(visible(str(error)), next_step="docs/schemas-as-code.md describes the folder") from error


def _loaded(folder: Path, languages: "Languages") -> "tuple[list[LocalSchema], list[str]]":
    from headgate.gateway.schemas.files import FolderFiles
    from headgate.gateway.schemas.folder import load_folder, unlisted

    with _folder_errors():
        files = FolderFiles(folder)
        schemas = load_folder(files, languages)
        return schemas, [visible(path) for path in unlisted(files, schemas)]


def _show(steps: "list[Step]", unlisted: list[str], *, json: bool, against: str = "") -> None:
    if json:
        print_json({"subjects": [_step_json(step, against) for step in steps], "unlisted": unlisted})
    else:
        headings = ["SUBJECT", "FILE", "ACTION", "LEVEL", "COMPATIBLE"]
        print_table(headings, [[step.subject, step.file, step.action, _level(step), _verdict(step)] for step in steps])
        for step in steps:
            if step.is_rejected:
                print(f"\n{step.subject} ({step.file}):")
                if step.problem:
                    print(visible(step.problem))
                print_answer(_answer(step, against), print)
    for path in unlisted:
        say(f"{path} is not in schemas.toml and is ignored")
    say(_counted(Counter(str(step.action) for step in steps)))


def _reject(steps: "list[Step]") -> None:
    rejected = [step.subject for step in steps if step.is_rejected]
    if rejected:
        raise AnswerIsNo(
            f"rejected: {', '.join(rejected)}", next_step="correct the schemas, or change their level in schemas.toml"
        )


def _answer(step: "Step", against: str) -> dict[str, Any]:
    """In the form of a registry's answer. Without findings, the first message is the reason."""
    found = [one.as_json() | ({"version": against} if against else {}) for one in step.result.found]
    return {"incompatibilities": found, "messages": [] if found else step.result.messages[:1]}


def _level(step: "Step") -> str | None:
    return step.level if step.old_level is None else f"{step.old_level or 'default'} → {step.level}"


def _verdict(step: "Step") -> str | None:
    if step.is_rejected:
        return "no"
    return "yes" if step.action == "new version" else None


def _step_json(step: "Step", against: str = "") -> dict[str, Any]:
    return {
        "subject": step.subject,
        "file": step.file,
        "action": step.action,
        "level": step.level,
        "level_changes_from": step.old_level,
        "version": step.version,
        "rejected": step.is_rejected,
        "problem": step.problem,
        **_answer(step, against),
    }


def _say_outcome(outcome: "Outcome") -> None:
    version = f" as version {outcome.version} with id {outcome.id}" if outcome.version else ""
    problem = f": {outcome.problem}" if outcome.problem else ""
    say(visible(f"{outcome.step.subject}: {outcome.state}{version}{problem}"))


def _outcome_json(outcome: "Outcome") -> dict[str, Any]:
    return {
        **_step_json(outcome.step),
        "state": outcome.state,
        "id": outcome.id,
        "version": outcome.version or outcome.step.version,
        "problem": outcome.problem,
    }


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "no subjects in schemas.toml"
