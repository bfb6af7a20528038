"""The exceptions of the broker. `broker.node.error_codes` maps them to Kafka error codes."""

import errno


class BrokerError(Exception):
    """Base class."""


class StorageError(BrokerError):
    """A disk operation failed.

    If `recoverable` is True, nothing has changed and a retry may succeed. Examples: the disk is full, or no file
    descriptor is left.
    """

    def __init__(self, message: str, error_number: int | None = None) -> None:
        super().__init__(message)
        self.error_number = error_number

    @property
    def is_out_of_space(self) -> bool:
        return self.error_number in (errno.ENOSPC, errno.EDQUOT)

    @property
    def recoverable(self) -> bool:
        return self.error_number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE)


class PartitionDeleted(StorageError):
    """The topic was deleted before its records were flushed."""


class DataDirectoryLocked(BrokerError):
    """Another process uses the data directory."""
