"""DescribeProducers v0: Returns the active idempotent producers of partitions (KIP-664).

Deviations:
- A partition that occurs twice
  Kafka: Describes it twice.
  Headgate: Describes it once.
- `coordinator_epoch` and `current_txn_start_offset`
  Kafka: Values of the current transaction.
  Headgate: Always -1, because there are no transactions.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.log.producer_state import ProducerState
from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer, clipped
from headgate.broker.protocol.request_shapes import DescribeProducersRequest, RequestContext
from headgate.broker.state.topic_names import topic_name_fault

API_KEY = 61
VERSIONS = range(1)

UNKNOWN = "This server does not host this topic-partition."


def handle(broker: Broker, context: RequestContext, request: DescribeProducersRequest) -> Answer:
    # Merge duplicates: the response contains each partition once.
    wanted: dict[str, dict[int, None]] = {}
    for asked in request.topics:
        wanted.setdefault(asked.name, {}).update(dict.fromkeys(asked.partition_indexes))
    return {
        "topics": [
            {"name": name, "partitions": [_describe(broker, name, index) for index in indexes]}
            for name, indexes in wanted.items()
        ]
    }


def _describe(broker: Broker, name: str, index: int) -> dict[str, object]:
    fault = topic_name_fault(name)
    if fault is not None:
        return _refused(index, ErrorCode.invalid_topic_exception, clipped(fault))
    topic = broker.topics.find(name)
    if topic is None:
        return _refused(index, ErrorCode.unknown_topic_or_partition, UNKNOWN)
    if not 0 <= index < len(topic.partitions):
        return _refused(index, ErrorCode.unknown_topic_or_partition, None)
    producers = topic.partitions[index].log.producers.by_id
    return {
        "partition_index": index,
        "error_code": ErrorCode.none,
        "error_message": None,
        "active_producers": [_producer(producer_id, state) for producer_id, state in producers.items()],
    }


def _producer(producer_id: int, state: ProducerState) -> dict[str, object]:
    last = state.batches[-1] if state.batches else None
    return {
        "producer_id": producer_id,
        "producer_epoch": state.epoch,
        "last_sequence": last.last_sequence if last is not None else -1,
        "last_timestamp": last.timestamp if last is not None else state.last_timestamp,
        "coordinator_epoch": -1,
        "current_txn_start_offset": -1,
    }


def _refused(index: int, code: ErrorCode, message: str | None) -> dict[str, object]:
    return {"partition_index": index, "error_code": code, "error_message": message, "active_producers": ()}
