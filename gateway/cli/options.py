"""Options that several commands share, with their environment variables."""

from enum import StrEnum
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
        help="Bootstrap addresses of the Kafka cluster.",
    ),
]
KafkaConfig: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--kafka-config",
        envvar="HEADGATE_KAFKA_CONFIG",
        metavar="FILE",
        help="Properties file of a Kafka client with the TLS and SASL settings of the cluster.",
    ),
]


class LogicalTypes(StrEnum):
    AVRO = "avro"
    NATIVE = "native"


LogicalForm: TypeAlias = Annotated[
    LogicalTypes,
    typer.Option(
        "--logical", help='Form of Avro\'s decimals, dates and timestamps in JSON; native: "9.99", "2026-11-18".'
    ),
]
DEFAULT_REGISTRY_URL = "http://127.0.0.1:8081"
RegistryUrl: TypeAlias = Annotated[
    str,
    typer.Option("--registry", envvar="HEADGATE_REGISTRY_URL", metavar="URL", help="The schema registry's address."),
]


class RuleAction(StrEnum):
    """The values of `headgate.serdes.RulePolicy`, whose import would delay `--help`."""

    FAIL = "fail"
    IGNORE = "ignore"


Rules: TypeAlias = Annotated[
    RuleAction,
    typer.Option(
        "--rules",
        help="Schemas with rules (ENCRYPT, CEL), which are not executed: fail, or ignore the rules.",
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
TopicName: TypeAlias = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", autocompletion=complete_topic)]
GroupName: TypeAlias = Annotated[str, typer.Argument(metavar="GROUP", help="The group.", autocompletion=complete_group)]
