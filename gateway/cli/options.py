"""Options that several commands share, each with its environment twin."""

from typing import Annotated, TypeAlias

import typer

from headgate.gateway.cli.completion import complete_group, complete_topic

DEFAULT_BOOTSTRAP_SERVER = "127.0.0.1:9092"

BootstrapServer: TypeAlias = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        envvar="HEADGATE_BOOTSTRAP_SERVER",
        metavar="HOST:PORT[,...]",
        help="Where the Kafka cluster is; any Kafka will do.",
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
TopicName: TypeAlias = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", autocompletion=complete_topic)]
GroupName: TypeAlias = Annotated[str, typer.Argument(metavar="GROUP", help="The group.", autocompletion=complete_group)]
