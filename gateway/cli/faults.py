"""Maps Kafka errors to command-line errors: the only such table."""

from kio.schema.errors import ErrorCode

from headgate.gateway.cli.errors import AnswerIsNo, CommandError, Unreachable, UsageError
from headgate.gateway.kafka.errors import BadAddress, ClusterUnreachable, KafkaFault, Refused
from headgate.proxy.admin.messages import ApiMissing
from headgate.proxy.errors import BrokerUnavailable, GroupNotFound, PartitionNotFound, ProxyError, TopicNotFound

_START_ONE = "start one with headgate up, or point -b (HEADGATE_BOOTSTRAP_SERVER) at a running one"
_NEXT_STEP = {
    ErrorCode.topic_already_exists: "headgate topic describe shows it; headgate topic alter changes it",
    ErrorCode.invalid_topic_exception: "use up to 249 letters, digits, dots, dashes and underscores",
    ErrorCode.invalid_config: "headgate topic describe TOPIC --all lists the configs and their values",
    ErrorCode.invalid_partitions: "headgate topic describe TOPIC shows its partitions; their number can only grow",
    ErrorCode.invalid_replication_factor: "use -r with at most the number of brokers; a single broker needs -r 1",
    ErrorCode.non_empty_group: "stop the group's consumers first; headgate group describe GROUP lists them",
    ErrorCode.unknown_member_id: "stop the group's consumers first; headgate group describe GROUP lists them",
    ErrorCode.topic_authorization_failed: "ask the administrator of the cluster for permission",
    ErrorCode.cluster_authorization_failed: "ask the administrator of the cluster for permission",
    ErrorCode.group_authorization_failed: "ask the administrator of the cluster for permission",
    ErrorCode.invalid_record: "give every record a key if the topic has cleanup.policy=compact",
    ErrorCode.message_too_large: "raise max.message.bytes of the topic, or send smaller records",
}


def explained(fault: KafkaFault | ProxyError) -> CommandError:
    match fault:
        case ClusterUnreachable():
            what = f"no Kafka broker responded at {fault.address}"
            return Unreachable(what, why=fault.reason, next_step=_START_ONE)
        case BrokerUnavailable():
            return Unreachable("the Kafka brokers stopped responding", why=str(fault), next_step=_START_ONE)
        case BadAddress():
            return UsageError(
                f"-b {fault.address!r} is not an address",
                why="it is not HOST:PORT[,HOST:PORT...]",
                next_step="-b 127.0.0.1:9092",
            )
        case TopicNotFound():
            return AnswerIsNo(f"there is no {fault.subject}", next_step="headgate topic list shows all topics")
        case GroupNotFound():
            return AnswerIsNo(f"there is no {fault.subject}", next_step="headgate group list shows all groups")
        case PartitionNotFound():
            return CommandError(
                f"there is no {fault.subject}", next_step="headgate topic describe TOPIC shows its partitions"
            )
        case Refused():
            return _refused(fault.subject, fault.code, fault.message)
        case ApiMissing():
            return CommandError(str(fault), next_step="use a newer broker version")
        case ProxyError() if fault.kafka_code is not None:
            return _refused(fault.subject, fault.kafka_code, fault.kafka_message or "")
        case _:
            return CommandError(str(fault))


def _refused(subject: str, code: ErrorCode, message: str) -> CommandError:
    name = code.name.upper()
    return CommandError(
        f"{subject}: the cluster returned {name}",
        why="" if message == name else message,
        next_step=_NEXT_STEP.get(code, ""),
    )
