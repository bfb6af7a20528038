"""`headgate up`: runs all services on this machine until Ctrl-C."""

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from headgate.gateway.cli.errors import UsageError


class Ports(StrEnum):
    AUTO = "auto"


def up(
    context: typer.Context,
    data_dir: Annotated[
        Path | None,
        typer.Option(envvar="HEADGATE_DATA_DIR", metavar="DIR", help="Data directory [default: .headgate]."),
    ] = None,
    host: Annotated[
        str | None, typer.Option(envvar="HEADGATE_HOST", help="Address to listen on [default: 127.0.0.1].")
    ] = None,
    broker_port: Annotated[
        int | None,
        typer.Option(envvar="HEADGATE_BROKER_PORT", help="The broker's port; 0 takes a free one [default: 9092]."),
    ] = None,
    registry_port: Annotated[
        int | None,
        typer.Option(envvar="HEADGATE_REGISTRY_PORT", help="The registry's port; 0 takes a free one [default: 8081]."),
    ] = None,
    proxy_port: Annotated[
        int | None,
        typer.Option(envvar="HEADGATE_PROXY_PORT", help="The REST proxy's port; 0 takes a free one [default: 8082]."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(envvar="HEADGATE_ONLY", metavar="SERVICE", help="Start only this service; repeatable."),
    ] = None,
    broker_config: Annotated[
        list[str] | None,
        typer.Option(
            "--set", envvar="HEADGATE_BROKER_CONFIG", metavar="NAME=VALUE", help="A Kafka broker config; repeatable."
        ),
    ] = None,
    ports: Annotated[
        Ports | None, typer.Option(metavar="auto", help="Free ports for all services that have no port option.")
    ] = None,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Keep data in a temporary directory, and delete it at the end.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the addresses as JSON when all services are ready.")
    ] = False,
) -> None:
    """Start all services, print their addresses, and run until Ctrl-C."""
    from headgate.gateway.cli.foreground import run_in_foreground
    from headgate.gateway.settings.model import load_settings

    given: dict[str, object] = {
        "data_dir": data_dir,
        "host": host,
        "broker_port": broker_port,
        "registry_port": registry_port,
        "proxy_port": proxy_port,
        "only": only,
        "broker_config": _configs(broker_config) if _is_given(context, "broker_config") and broker_config else None,
    }
    flags = {name: value for name, value in given.items() if _is_given(context, name)}
    if ports is Ports.AUTO:
        flags = {"broker_port": 0, "registry_port": 0, "proxy_port": 0} | flags
    if ephemeral and "data_dir" in flags:
        raise UsageError("--ephemeral and --data-dir both choose the data directory", next_step="remove one of them")
    with TemporaryDirectory(prefix="headgate-") if ephemeral else nullcontext() as folder:
        if folder is not None:
            flags["data_dir"] = Path(folder)
        code = run_in_foreground(load_settings(flags, _files_of_options(context)), json=json)
    if code:
        raise typer.Exit(code)


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether the command line or the table [up] sets it. Other sources are read by the settings model."""
    source = context.get_parameter_source(name)
    return source is not None and source.name in {"COMMANDLINE", "DEFAULT_MAP"}


def _files_of_options(context: typer.Context) -> dict[str, str]:
    """Settings files that set options of this command, by option name."""
    import os

    from headgate.gateway.cli.defaults import file_of
    from headgate.gateway.cli.environment_variables import options
    from headgate.gateway.settings.files import settings_files

    files = settings_files(Path.cwd(), os.environ)
    found = {}
    for option in options(context.command):
        source = context.get_parameter_source(option.name)
        if source is not None and source.name == "DEFAULT_MAP" and (file := file_of(files, ("up",), option)):
            found[str(option.name)] = file
    return found


def _configs(pairs: list[str]) -> dict[str, str]:
    configs = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise UsageError(f"--set {pair!r} is not NAME=VALUE", next_step="--set log.retention.hours=24")
        configs[name] = value
    return configs
