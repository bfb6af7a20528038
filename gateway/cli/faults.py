"""Maps errors of Kafka and of the registry to command-line errors: the only such table."""

from kio.schema.errors import ErrorCode

from headgate.gateway.cli.errors import AnswerIsNo, CommandError, Unreachable, UsageError
from headgate.gateway.schemas.registry_api import RegistryRefused
from headgate.kafka_client.errors import (
    ApiUnsupported,
    BrokerUnavailable,
    GroupNotFound,
    InvalidProperty,
    KafkaClientError,
    NotAuthenticated,
    PartitionNotFound,
    TopicNotFound,
)
from headgate.proxy.errors import ProxyError, SchemaNotFound, SchemaUnavailable
from headgate.serdes import InvalidSchema, RegistryClientError, RegistryUnavailable, UnknownSchema

_START_ONE = "start one with headgate up, or point -b (HEADGATE_BOOTSTRAP_SERVER) at a running one"
_USE_CONFIG = "check the file of --kafka-config (HEADGATE_KAFKA_CONFIG)"
_REGISTRY = "start a registry with headgate up, or set --registry (HEADGATE_REGISTRY_URL)"
_LIST_SCHEMAS = "headgate schema list shows all subjects"
_NEXT_STEP = {
    ErrorCode.topic_already_exists: "headgate topic describe shows it; headgate topic alter changes it",
    ErrorCode.invalid_topic_exception: "use up to 249 letters, digits, dots, dashes and underscores",
    ErrorCode.invalid_config: "headgate topic describe TOPIC --all lists the configs and their values",
    ErrorCode.invalid_partitions: "headgate topic describe TOPIC shows its partitions; their number can only grow",
    ErrorCode.invalid_replication_factor: "use -r with at most the number of brokers",
    ErrorCode.non_empty_group: "stop the group's consumers first; headgate group describe GROUP lists them",
    ErrorCode.unknown_member_id: "stop the group's consumers first; headgate group describe GROUP lists them",
    ErrorCode.topic_authorization_failed: "ask the administrator of the cluster for permission",
    ErrorCode.cluster_authorization_failed: "ask the administrator of the cluster for permission",
    ErrorCode.group_authorization_failed: "ask the administrator of the cluster for permission",
    ErrorCode.invalid_record: "give every record a key if the topic has cleanup.policy=compact",
    ErrorCode.message_too_large: "raise max.message.bytes of the topic, or send smaller records",
}


def explained(fault: KafkaClientError) -> CommandError:
    match fault:
        case BrokerUnavailable(address=address) if address:
            what = f"no Kafka broker responded at {address}"
            return Unreachable(what, why=fault.reason, next_step=_lowered(fault.advice) or _START_ONE)
        case NotAuthenticated():
            what = f"the authentication at {fault.address or 'the cluster'} failed"
            return Unreachable(what, why=fault.reason or str(fault), next_step=_lowered(fault.advice) or _USE_CONFIG)
        case BrokerUnavailable():
            return Unreachable("the Kafka brokers stopped responding", why=str(fault), next_step=_START_ONE)
        case InvalidProperty(name="bootstrap.servers"):
            return UsageError("-b is not an address", why=fault.problem, next_step="-b 127.0.0.1:9092")
        case InvalidProperty():
            return UsageError(f"invalid Kafka client property {fault.name}", why=fault.problem, next_step=_USE_CONFIG)
        case TopicNotFound() if fault.subject:
            return AnswerIsNo(f"there is no {fault.subject}", next_step="headgate topic list shows all topics")
        case GroupNotFound() if fault.subject:
            return AnswerIsNo(f"there is no {fault.subject}", next_step="headgate group list shows all groups")
        case PartitionNotFound() if fault.subject:
            return CommandError(
                f"there is no {fault.subject}", next_step="headgate topic describe TOPIC shows its partitions"
            )
        case ApiUnsupported():
            return CommandError(str(fault), next_step="use a newer broker version")
        case _ if fault.kafka_code is not None:
            return _refused(fault.subject, fault.kafka_code, fault.kafka_message or "")
        case _:
            return CommandError(str(fault))


def explained_schema(fault: RegistryClientError | InvalidSchema | ProxyError) -> CommandError:
    """`ProxyError`: an error of `proxy.schemas`."""
    match fault:
        case UnknownSchema() | SchemaNotFound():
            return AnswerIsNo("there is no such schema", why=str(fault), next_step=_LIST_SCHEMAS)
        case RegistryUnavailable() | SchemaUnavailable():
            return Unreachable("the schema registry did not respond", why=str(fault), next_step=_REGISTRY)
        case _:
            return CommandError("the schema cannot be used", why=str(fault))


def explained_refusal(fault: RegistryRefused) -> CommandError:
    why = str(fault)
    match fault.status:
        case 404:
            return AnswerIsNo("the registry has no such subject, version or schema", why=why, next_step=_LIST_SCHEMAS)
        case 409:
            return AnswerIsNo("the registry reports a conflict", why=why)
        case 401 | 403:
            return CommandError(
                "the registry denied access", why=why, next_step="--registry http://user:password@host:port"
            )
        case status if status >= 500:
            return CommandError(f"the registry failed with HTTP status {status}", why=why)
        case _:
            return CommandError("the registry rejected the request", why=why)


def too_many_replicas(fault: KafkaClientError, brokers: int) -> CommandError:
    """The replication factor does not fit a cluster with so many brokers."""
    error = explained(fault)
    noun = "broker" if brokers == 1 else "brokers"
    limit = "1" if brokers == 1 else f"{brokers} or less"
    error.next_step = f"the cluster has {brokers} {noun}; use -r {limit}"
    return error


def _lowered(advice: str) -> str:
    return advice[:1].lower() + advice[1:]


def _refused(subject: str, code: ErrorCode, message: str) -> CommandError:
    name = code.name.upper()
    return CommandError(
        f"{subject}: the cluster returned {name}",
        why="" if message == name else message,
        next_step=_NEXT_STEP.get(code, ""),
    )
