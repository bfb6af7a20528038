"""The `headgate` command: combines the subcommands and turns their exceptions into messages and exit codes.

This module imports nothing heavy, so `headgate --help` and tab completion respond at once. Commands import lazily.
"""

import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from typer.main import get_command

from headgate.gateway.cli import config, consume, dead, group, pipeline, produce, schema, topic, up, warm
from headgate.gateway.cli.defaults import command_defaults, file_of
from headgate.gateway.cli.environment_variables import assign_environment_variables
from headgate.gateway.cli.errors import CommandError, ExitCode, UsageError
from headgate.gateway.cli.help_masking import mask_help
from headgate.gateway.cli.output import say, say_heading
from headgate.gateway.settings.files import SettingsError, settings_files

app = typer.Typer(
    name="headgate",
    help="Kafka-protocol broker, schema registry and serialization gateway.",
    epilog="Every option has an environment variable: HEADGATE_<COMMAND>_<OPTION>.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("up")(up.up)
app.add_typer(topic.app, name="topic")
app.command("produce")(produce.produce)
app.command("consume")(consume.consume)
app.add_typer(group.app, name="group")
app.add_typer(schema.app, name="schema")
app.add_typer(dead.app, name="dead")
app.add_typer(pipeline.app, name="pipeline")
app.command("warm")(warm.warm)
app.add_typer(config.app, name="config")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"headgate {version('headgate')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Kafka-protocol broker, schema registry and serialization gateway."""


def main() -> None:
    """Entry point of the `headgate` script."""
    _open_closed_streams()
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            code = _report_fault(error)
        _forget_stdout()
    sys.exit(code)


def _open_closed_streams() -> None:
    """Open /dev/null for closed standard streams. Otherwise the next opened file gets their descriptors."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def parser() -> Any:
    """Build the parser of all commands, with an environment variable for each option."""
    command: Any = get_command(app)
    assign_environment_variables(command)
    mask_help(command)
    return command


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return the exit code."""
    command = parser()
    try:
        try:
            defaults = command_defaults(command, settings_files(Path.cwd(), os.environ))
        except SettingsError as error:
            # --help, --version and completion work with an invalid settings file. All other commands report it.
            defaults = {}
            _replace_callbacks(command, error)
        code = command.main(
            args=list(arguments),
            prog_name="headgate",
            standalone_mode=False,
            default_map=defaults,
        )
    except SettingsError as error:
        return _report(UsageError(str(error), next_step="correct the value; docs/configuration.md lists the settings"))
    except CommandError as error:
        return _report(error)
    except typer.TyperException as error:
        return _report_parser_error(error)
    except (typer.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except SystemExit as ended:
        # The parser exits like this after a broken pipe, for example with `| head`.
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        _forget_stdout()
        return ExitCode.DONE
    except Exception as error:
        return _report_fault(error)
    return code if isinstance(code, int) else ExitCode.DONE


def _replace_callbacks(command: Any, error: Exception) -> None:
    """Make all commands raise `error`. A group of commands does nothing itself, so it stays unchanged."""

    def fail(**_: object) -> None:
        raise error

    for inner in getattr(command, "commands", {}).values():
        if not hasattr(inner, "commands"):
            inner.callback = fail
        _replace_callbacks(inner, error)


def _report_parser_error(error: typer.TyperException) -> int:
    # The parser formats its own errors, with the usage line. They may quote an address with a password: `say` masks it.
    show: Callable[[IO[str]], None] | None = getattr(error, "show", None)
    if show is None:
        say(f"Error: {error}")
    else:
        shown = io.StringIO()
        show(shown)
        say(shown.getvalue().rstrip("\n"))
    option, context = getattr(error, "param", None), getattr(error, "ctx", None)
    if option is not None and context is not None:
        source = context.get_parameter_source(option.name)
        path = tuple(context.command_path.split()[1:])
        # The parser names the environment variable even if the value comes from a file.
        if source is not None and source.name == "DEFAULT_MAP":
            file = file_of(settings_files(Path.cwd(), os.environ), path, option)
            say(f"The value comes from {file}." if file else "The value comes from a settings file.")
    return error.exit_code


def _report_fault(error: Exception) -> int:
    from headgate.gateway.cli.faults import explained
    from headgate.kafka_client.errors import KafkaClientError

    if isinstance(error, KafkaClientError):
        return _report(explained(error))
    if isinstance(error, ImportError):
        step = f"pip install {error.name}" if error.name else "run the command above"
        return _report(
            CommandError("this command needs a library that is not installed", why=str(error), next_step=step)
        )
    if isinstance(error, OSError):
        return _report(CommandError(str(error.strerror or error), why=str(error.filename or "")))
    if isinstance(error, UnicodeEncodeError):
        # Invalid UTF-8 in an argument or environment variable.
        return _report(UsageError(f"{error.object!r} is not text in UTF-8"))
    raise error


def _report(error: CommandError) -> int:
    say_heading(f"error: {error.what}")
    if error.why:
        say(f"  why: {error.why}")
    if error.next_step:
        say(f"  try: {error.next_step}")
    return error.exit_code


def _forget_stdout() -> None:
    """Redirect stdout to /dev/null, because the interpreter flushes it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
