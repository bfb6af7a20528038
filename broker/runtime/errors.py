"""The broker's own faults. Handlers turn them into Kafka error codes; `broker.engine` holds the table for the rest."""

import errno


class BrokerError(Exception):
    """The root of what the broker raises on purpose."""


class StorageError(BrokerError):
    """The disk refused an operation. `recoverable`: nothing was left half done and a retry may succeed, for example
    because the disk is full or no file descriptor is left."""

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
    """Its topic was deleted before all of it was on the disk, which nobody needs any more."""


class DataDirectoryLocked(BrokerError):
    """Another process has the data directory."""
