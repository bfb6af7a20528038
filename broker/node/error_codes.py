"""The table that maps exceptions to Kafka error codes."""

from collections.abc import Mapping

from kio.schema.errors import ErrorCode

from headgate.broker.log.partition_log import OffsetOutOfRange
from headgate.broker.log.producer_state import OutOfOrderSequence, StaleProducerEpoch
from headgate.broker.protocol.outcomes import Refusal
from headgate.broker.protocol.produced_batch import UnsupportedCodec
from headgate.broker.runtime.errors import PartitionDeleted, StorageError
from headgate.broker.state.assignments import InvalidAssignment
from headgate.broker.state.configs.values import InvalidConfig
from headgate.wire.errors import CorruptBatch, InvalidBatch

ERROR_CODES: Mapping[type[Exception], ErrorCode] = {
    CorruptBatch: ErrorCode.corrupt_message,
    InvalidAssignment: ErrorCode.invalid_replica_assignment,
    InvalidBatch: ErrorCode.invalid_record,
    InvalidConfig: ErrorCode.invalid_config,
    OSError: ErrorCode.kafka_storage_error,
    OffsetOutOfRange: ErrorCode.offset_out_of_range,
    OutOfOrderSequence: ErrorCode.out_of_order_sequence_number,
    PartitionDeleted: ErrorCode.unknown_topic_or_partition,
    StaleProducerEpoch: ErrorCode.invalid_producer_epoch,
    StorageError: ErrorCode.kafka_storage_error,
    UnsupportedCodec: ErrorCode.unsupported_compression_type,
}


def code_of(error: Exception) -> ErrorCode:
    """Return the error code of the exception's class, or of its nearest base class in the table."""
    return next(
        (ERROR_CODES[kind] for kind in type(error).__mro__ if kind in ERROR_CODES), ErrorCode.unknown_server_error
    )


def refusal_of(error: Exception) -> Refusal:
    return Refusal(code_of(error), str(error))
