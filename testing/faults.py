"""Faults of the broker of a test: a full disk, slow fsyncs, and error codes for the next requests.

The faults are in a file that the broker reads before each request and each write (`faulty_broker`).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

FAILABLE: Final = {
    "Produce": 0,
    "Fetch": 1,
    "ListOffsets": 2,
    "OffsetCommit": 8,
    "JoinGroup": 11,
    "Heartbeat": 12,
    "SyncGroup": 14,
    "CreateTopics": 19,
    "InitProducerId": 22,
}
"""The APIs that `fail_requests` supports, with their keys."""


class BrokerFaults:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._faults: dict[str, Any] = {"disk_full": False, "fsync_seconds": 0.0, "requests": []}
        self._save()

    def fail_requests(self, api: str, error: str, count: int = 1) -> None:
        """Answer the next `count` requests of an API with an error code, without executing them.

        `fail_requests("Produce", "NOT_ENOUGH_REPLICAS")`. Raises ValueError for unknown names.
        """
        from kio.schema.errors import ErrorCode

        if api not in FAILABLE:
            raise ValueError(f"{api} cannot fail; use one of {', '.join(FAILABLE)}")
        if error.lower() not in ErrorCode.__members__:
            raise ValueError(f"{error} is not an error code of Kafka")
        number = len(self._faults["requests"])
        fault = {"number": number, "api_key": FAILABLE[api], "error": error.lower(), "count": count}
        self._faults["requests"].append(fault)
        self._save()

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Every write to a log fails as on a full disk."""
        self._set("disk_full", True)
        try:
            yield
        finally:
            self._set("disk_full", False)

    @contextmanager
    def slow_fsync(self, seconds: float) -> Iterator[None]:
        """Every fsync of a log takes this much longer."""
        self._set("fsync_seconds", seconds)
        try:
            yield
        finally:
            self._set("fsync_seconds", 0.0)

    def _set(self, name: str, value: object) -> None:
        self._faults[name] = value
        self._save()

    def _save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self._faults))
        part.replace(self.path)
