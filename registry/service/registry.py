"""The registry as one object: store, languages, settings and clock."""

import time
from collections.abc import Callable

from headgate.registry.languages import Languages
from headgate.registry.service.submitted_schema import Environment
from headgate.registry.settings import RegistrySettings
from headgate.registry.storage.base import RegistryStore


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Registry:
    def __init__(
        self,
        store: RegistryStore,
        settings: RegistrySettings | None = None,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self.store = store
        self.settings = settings or RegistrySettings()
        self.environment = Environment(Languages(), self.settings)
        self.now_ms = now_ms
