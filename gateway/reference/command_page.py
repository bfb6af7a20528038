"""docs/cli.md: every command with its options, defaults and environment twins."""

from headgate.gateway.cli.errors import ExitCode
from headgate.gateway.reference.command_tree import Command, Parameter, commands

WRITTEN = "Written by `python -m headgate.gateway.reference`; a test fails when it is stale.\n"

_MEANING = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "failed",
    ExitCode.USAGE: "the command line or the settings make no sense",
    ExitCode.ANSWER_IS_NO: "the answer is no: not found, not compatible",
    ExitCode.UNREACHABLE: "no server answered",
    ExitCode.INTERRUPTED: "interrupted with Ctrl-C",
}


def command_page() -> str:
    tree = commands()
    parts = [
        "# The command line\n",
        WRITTEN,
        "Data goes to stdout, talk to stderr. Tables are drawn on a terminal and plain in a pipe; `--json` prints "
        "JSON, one document per line where records stream. Colours stay away when `NO_COLOR` is set. What destroys "
        "something asks first, or needs `--yes`. `headgate --install-completion` makes Tab complete commands, topics "
        "and groups.\n",
        "An option is taken from the command line, else from its environment variable, else from a settings file "
        "(see [configuration.md](configuration.md)), else it has its default.\n",
        "| exit code | meaning |",
        "|---|---|",
        *(f"| {int(code)} | {_MEANING[code]} |" for code in ExitCode),
        "",
        "| command | |",
        "|---|---|",
        *(f"| [{each.name}](#{'-'.join(each.path)}) | {each.help} |" for each in tree if not each.is_group),
        "",
    ]
    for command in tree:
        if not command.is_group:
            parts += _section(command)
    return "\n".join(parts).rstrip() + "\n"


def _section(command: Command) -> list[str]:
    lines = [f"## {command.name}\n", f"{command.help}\n", f"```\n{command.usage}\n```\n"]
    arguments = [each for each in command.parameters if each.is_argument]
    options = [each for each in command.parameters if not each.is_argument]
    if arguments:
        lines += ["| argument | meaning |", "|---|---|"]
        lines += [f"| `{_cell(each.metavar)}` | {_cell(each.help)} |" for each in arguments]
        lines.append("")
    if options:
        lines += ["| option | meaning | default | environment |", "|---|---|---|---|"]
        lines += [_option(each) for each in options]
        lines.append("")
    return lines


def _option(parameter: Parameter) -> str:
    names = ", ".join(f"`{name}`" for name in parameter.names)
    metavar = f" `{_cell(parameter.metavar)}`" if parameter.metavar else ""
    environment = ", ".join(f"`{name}`" for name in parameter.environment)
    cells = [names + metavar, _cell(parameter.help), _cell(parameter.default) or "-", environment or "-"]
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
