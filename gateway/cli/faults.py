"""The one table from faults of a Kafka cluster to what the command line says of them."""

from kio.schema.errors import ErrorCode

from gateway.cli.errors import AnswerIsNo, CommandError, Unreachable, UsageError
from gateway.kafka.errors import (
    ApiMissing,
    BadAddress,
    ClusterUnreachable,
    KafkaFault,
    Refused,
    UnknownGroup,
    UnknownTopic,
)

_NEXT_STEP = {
    ErrorCode.topic_already_exists: "headgate topic describe shows it; headgate topic alter changes it",
    ErrorCode.invalid_topic_exception: "use up to 249 letters, digits, dots, dashes and underscores",
    ErrorCode.invalid_config: "headgate topic describe TOPIC --all lists the configs and their values",
    ErrorCode.invalid_partitions: "headgate topic describe TOPIC shows its partitions; their number can only grow",
    ErrorCode.invalid_replication_factor: "a single broker keeps one replica: -r 1",
    ErrorCode.non_empty_group: "stop the group's consumers first; headgate group describe GROUP lists them",
    ErrorCode.unknown_member_id: "stop the group's consumers first; headgate group describe GROUP lists them",
    ErrorCode.topic_authorization_failed: "ask the cluster's owner for the right to do this",
    ErrorCode.cluster_authorization_failed: "ask the cluster's owner for the right to do this",
    ErrorCode.group_authorization_failed: "ask the cluster's owner for the right to do this",
    ErrorCode.message_too_large: "raise max.message.bytes of the topic, or send smaller records",
}


def explained(fault: KafkaFault) -> CommandError:
    match fault:
        case ClusterUnreachable():
            return Unreachable(
                f"no Kafka broker answers at {fault.address}",
                why=fault.reason,
                next_step="start one with headgate up, or point -b (HEADGATE_BOOTSTRAP_SERVER) at a running one",
            )
        case BadAddress():
            return UsageError(
                f"-b {fault.address!r} is no address",
                why="it is not HOST:PORT[,HOST:PORT...]",
                next_step="-b 127.0.0.1:9092",
            )
        case UnknownTopic():
            return AnswerIsNo(f"there is no topic {fault.topic}", next_step="headgate topic list shows those there are")
        case UnknownGroup():
            return AnswerIsNo(f"there is no group {fault.group}", next_step="headgate group list shows those there are")
        case Refused():
            return CommandError(
                f"{fault.subject}: the cluster said {fault.code.name.upper()}",
                why="" if fault.message == fault.code.name.upper() else fault.message,
                next_step=_NEXT_STEP.get(fault.code, ""),
            )
        case ApiMissing():
            return CommandError(str(fault), next_step="a newer broker has it")
        case _:
            return CommandError(str(fault))
