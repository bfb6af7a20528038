"""Consumer instances of one worker: creation, lookup, eviction of idle instances, refresh of topic patterns."""

import asyncio
import logging
import time
import uuid
from typing import Final

from headgate.proxy.consumers.config import InstanceConfig
from headgate.proxy.consumers.instance import ConsumerInstance, StoredResponse
from headgate.proxy.consumers.ownership import Ownership
from headgate.proxy.consumers.patterns import check_pattern, matching
from headgate.proxy.errors import ConsumerExists, ConsumerInstanceNotFound, ProxyError, TooManyRequests
from headgate.proxy.reading.cluster import Cluster
from headgate.proxy.settings import ProxySettings

SWEEP_SECONDS: Final = 1.0
PATTERN_REFRESH_SECONDS: Final = 10.0
"""How often topic patterns are matched against new topics. The default of Java's consumers is five minutes."""

_log: Final = logging.getLogger(__name__)


class ConsumerInstances:
    def __init__(self, settings: ProxySettings, ownership: Ownership, cluster: Cluster) -> None:
        self._settings = settings
        self._ownership = ownership
        self._cluster = cluster
        self._instances: dict[tuple[str, str], ConsumerInstance] = {}
        self._kept_bytes: dict[ConsumerInstance, int] = {}
        self._sweeper: asyncio.Task[None] | None = None
        self._patterns_checked = 0.0

    def __len__(self) -> int:
        return len(self._instances)

    def create(self, group: str, config: InstanceConfig) -> ConsumerInstance:
        """Does not connect to a broker yet. Raises ConsumerExists, TooManyRequests."""
        name = config.name or self._new_name(group)
        if (group, name) in self._instances:
            raise ConsumerExists("Consumer with specified consumer ID already exists in the specified consumer group.")
        if len(self._instances) >= self._settings.consumer_instances_max:
            raise TooManyRequests(
                f"This worker has {self._settings.consumer_instances_max} consumer instances. Delete some, or "
                "retry when idle ones have been evicted.",
                retry_after_seconds=10,
            )
        instance = self._instances[group, name] = ConsumerInstance(group, name, config, self._settings, self._cluster)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().create_task(self._sweep())
        return instance

    def find(self, group: str, name: str) -> ConsumerInstance:
        """Raises ConsumerInstanceNotFound."""
        found = self._instances.get((group, name))
        if found is None:
            raise ConsumerInstanceNotFound
        return found

    async def delete(self, group: str, name: str) -> None:
        instance = self.find(group, name)
        self._remove(instance)
        await instance.close(confirmed=True)

    async def subscribe_to_pattern(self, instance: ConsumerInstance, pattern: str) -> None:
        check_pattern(pattern)
        await instance.subscribe(matching(pattern, await self._cluster.topics(fresh=True)), pattern)

    def keep(self, instance: ConsumerInstance, response: StoredResponse) -> None:
        """Accounts for the stored response. Evicts the oldest responses beyond the limit."""
        self._kept_bytes.pop(instance, None)
        self._kept_bytes[instance] = len(response.body)
        while sum(self._kept_bytes.values()) > self._settings.consumer_replay_bytes_max:
            oldest = next(iter(self._kept_bytes))
            self._kept_bytes.pop(oldest)
            oldest.drop_response()

    async def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.wait([self._sweeper])
        instances = list(self._instances.values())
        self._instances.clear()
        await asyncio.gather(*(instance.close(confirmed=False) for instance in instances), return_exceptions=True)

    def _remove(self, instance: ConsumerInstance) -> None:
        self._instances.pop((instance.group, instance.name), None)
        self._kept_bytes.pop(instance, None)

    def _new_name(self, group: str) -> str:
        """Returns a name that this worker owns, so that later requests need no forwarding."""
        while True:
            name = f"rest-consumer-{uuid.uuid4()}"
            if self._ownership.elsewhere(group, name) is None:
                return name

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await self._evict()
                if time.monotonic() - self._patterns_checked >= PATTERN_REFRESH_SECONDS:
                    self._patterns_checked = time.monotonic()
                    await self._refresh_patterns()
            except ProxyError as error:
                _log.warning("Topic patterns of consumer instances could not be refreshed: %s", error)
            except Exception:
                _log.exception("Eviction of consumer instances failed")

    async def _evict(self) -> None:
        now = time.monotonic()
        limit = self._settings.consumer_instance_timeout_ms / 1000
        idle = [instance for instance in self._instances.values() if instance.idle_seconds(now) >= limit]
        for instance in idle:
            self._remove(instance)
        await asyncio.gather(*(instance.close(confirmed=False) for instance in idle), return_exceptions=True)

    async def _refresh_patterns(self) -> None:
        patterned = [instance for instance in self._instances.values() if instance.pattern is not None]
        if not patterned:
            return
        topics = await self._cluster.topics(fresh=True)
        for instance in patterned:
            assert instance.pattern is not None
            found = matching(instance.pattern, topics)
            if found != instance.topics and (instance.group, instance.name) in self._instances:
                await instance.subscribe(found, instance.pattern)
