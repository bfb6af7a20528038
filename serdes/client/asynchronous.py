"""The registry client for asyncio, with httpx, which is imported when a client is created."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar
from uuid import UUID

from headgate.serdes.client.core import RegistryCore
from headgate.serdes.client.settings import RegistrySettings
from headgate.serdes.client.steps import Effect, HttpRequest, HttpResponse, NoResponse, Pause, Reply, Steps
from headgate.serdes.client.transport import Bounded, needs_tls, tls_context
from headgate.serdes.rules import Rules
from headgate.serdes.schemas import RegisteredSchema, SchemaDefinition

if TYPE_CHECKING:
    import httpx

Result = TypeVar("Result")


class AsyncRegistryClient:
    """Client for one event loop.

    One request is in flight at a time, so that concurrent tasks request an id only once.
    """

    def __init__(
        self,
        settings: RegistrySettings | str,
        *,
        transport: "httpx.AsyncBaseTransport | None" = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        import httpx

        self.settings = RegistrySettings((settings,)) if isinstance(settings, str) else settings
        self.core = RegistryCore(self.settings, clock, jitter)
        self._sleep = sleep
        self._lock = asyncio.Lock()
        verify = tls_context(self.settings.tls) if needs_tls(self.settings) else True
        self._http = httpx.AsyncClient(transport=transport, verify=verify, timeout=self.settings.timeout_seconds)

    async def run(self, steps: Steps[Result]) -> Result:
        """Run the steps of a use case. Steps without a request take no lock."""
        result: Result
        try:
            effect = next(steps)
        except StopIteration as done:
            result = done.value
            return result
        async with self._lock:
            while True:
                try:
                    effect = steps.send(await self._perform(effect))
                except StopIteration as done:
                    result = done.value
                    return result

    async def schema_by_id(self, schema_id: int) -> RegisteredSchema:
        return await self.run(self.core.schema_by_id(schema_id))

    async def schema_by_guid(self, guid: UUID) -> RegisteredSchema:
        return await self.run(self.core.schema_by_guid(guid))

    async def version(self, subject: str, version: int) -> RegisteredSchema:
        return await self.run(self.core.version(subject, version))

    async def latest(self, subject: str) -> RegisteredSchema:
        return await self.run(self.core.latest(subject))

    async def register(self, subject: str, schema: SchemaDefinition, *, normalize: bool = False) -> RegisteredSchema:
        return await self.run(self.core.register(subject, schema, normalize))

    async def lookup(self, subject: str, schema: SchemaDefinition, *, normalize: bool = False) -> RegisteredSchema:
        return await self.run(self.core.lookup(subject, schema, normalize))

    async def reference_texts(self, schema: SchemaDefinition) -> dict[str, str]:
        return await self.run(self.core.reference_texts(schema))

    async def rules_of(self, registered: RegisteredSchema) -> Rules:
        return await self.run(self.core.rules_of(registered))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _perform(self, effect: Effect) -> Reply:
        if isinstance(effect, Pause):
            await self._sleep(effect.seconds)
            return None
        return await self._send(effect) if isinstance(effect, HttpRequest) else None

    async def _send(self, request: HttpRequest) -> HttpResponse | NoResponse:
        import httpx

        bounded = Bounded(self.settings)
        try:
            async with self._http.stream(
                request.method, request.url, headers=list(request.headers), content=request.body
            ) as response:
                async for chunk in response.aiter_bytes():
                    if not bounded.add(chunk):
                        return NoResponse("the response is too large or too slow")
                return HttpResponse(response.status_code, bounded.content())
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            return NoResponse(f"{type(error).__name__}: {error}")
