"""`headgate pipeline`: run, plan, export. The implementation is in `spark_udfs.pipeline`.

Needs the `spark` extra and Java. `python -m headgate.spark_udfs.pipeline` does the same without the other packages, for
spark-submit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from headgate.gateway.cli.errors import CommandError, Unreachable, UsageError
from headgate.gateway.cli.options import Json
from headgate.gateway.cli.output import print_json, say

app = typer.Typer(help="Declared pipelines: run, plan, export.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The pipeline, in TOML or YAML.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a value of the file, such as checkpoint=DIR; repeatable."
    ),
]


@app.command("run")
def run(
    file: File,
    once: Annotated[bool, typer.Option("--once", help="Process the available records, then exit.")] = False,
    metrics_json: Annotated[
        Path | None, typer.Option("--metrics-json", metavar="FILE", help="Write the metrics to this file.")
    ] = None,
    metrics_listen: Annotated[
        str | None, typer.Option("--metrics-listen", metavar="HOST:PORT", help="Serve the metrics to Prometheus.")
    ] = None,
    set_: Set = None,
    json: Json = False,
) -> None:
    """Run a pipeline until Ctrl-C. The current batch is finished first."""
    with _explaining():
        from headgate.spark_udfs.pipeline.command import RunOptions, parse_overrides, run_pipeline

        options = RunOptions(once, metrics_json, metrics_listen, parse_overrides(set_ or []))
        document = run_pipeline(file, options)
    if json:
        print_json(document)


@app.command("plan")
def plan(file: File, set_: Set = None, json: Json = False) -> None:
    """Show the plan of a pipeline and the columns of every step."""
    with _explaining():
        from headgate.spark_udfs.pipeline.command import parse_overrides, plan_pipeline

        found = plan_pipeline(file, parse_overrides(set_ or []))
    if json:
        print_json(found.as_json())
    else:
        print(found.as_text())


@app.command("export")
def export(
    file: File,
    sdp: Annotated[
        Path, typer.Option("--sdp", metavar="FOLDER", help="Write a spark-pipelines project to this new folder.")
    ],
    set_: Set = None,
    json: Json = False,
) -> None:
    """Convert a pipeline to a project of Spark Declarative Pipelines."""
    with _explaining():
        from headgate.spark_udfs.pipeline.checks.load import load
        from headgate.spark_udfs.pipeline.command import parse_overrides
        from headgate.spark_udfs.pipeline.export import export as project_of

        project = project_of(load(file, overrides=parse_overrides(set_ or [])))
        project.write(sdp)
    if json:
        print_json({"files": [str(sdp / name) for name in project.files], "variables": list(project.variables)})
        return
    for name in project.files:
        print(sdp / name)
    if project.variables:
        say(f"set these environment variables before spark-pipelines run: {', '.join(project.variables)}")


@contextmanager
def _explaining() -> Iterator[None]:
    """Convert pipeline errors to command errors with exit codes."""
    from headgate.spark_udfs.extra import MissingExtra
    from headgate.spark_udfs.pipeline.errors import PipelineError, PipelineMistakes

    try:
        yield
    except PipelineMistakes as mistakes:
        for mistake in mistakes.mistakes:
            say(mistake.text(mistakes.file))
        count = len(mistakes.mistakes)
        raise UsageError(
            f"{mistakes.file} has {count} mistake{'s' if count > 1 else ''}, listed above",
            next_step="docs/pipelines.md",
        ) from mistakes
    except PipelineError as error:
        kind = Unreachable if error.unreachable else CommandError
        raise kind(error.what, why=error.why, next_step=error.advice) from error
    except MissingExtra as error:
        raise CommandError(
            "pipelines need Spark, which is not installed", why=str(error), next_step="pip install 'headgate[spark]'"
        ) from error
