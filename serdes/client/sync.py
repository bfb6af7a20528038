"""The registry client for threads, with httpx, which is imported when a client is created."""

import random
import threading
import time
from collections.abc import Callable
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


class RegistryClient:
    """Safe to share between threads. One request is in flight at a time, so that threads request an id only once."""

    def __init__(
        self,
        settings: RegistrySettings | str,
        *,
        transport: "httpx.BaseTransport | None" = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        import httpx

        self.settings = RegistrySettings((settings,)) if isinstance(settings, str) else settings
        self.core = RegistryCore(self.settings, clock, jitter)
        self._sleep = sleep
        self._lock = threading.RLock()
        verify = tls_context(self.settings.tls) if needs_tls(self.settings) else True
        self._http = httpx.Client(transport=transport, verify=verify, timeout=self.settings.timeout_seconds)

    def run(self, steps: Steps[Result]) -> Result:
        """Run the steps of a use case. Steps without a request take no lock."""
        result: Result
        try:
            effect = next(steps)
        except StopIteration as done:
            result = done.value
            return result
        with self._lock:
            while True:
                try:
                    effect = steps.send(self._perform(effect))
                except StopIteration as done:
                    result = done.value
                    return result

    def schema_by_id(self, schema_id: int) -> RegisteredSchema:
        return self.run(self.core.schema_by_id(schema_id))

    def schema_by_guid(self, guid: UUID) -> RegisteredSchema:
        return self.run(self.core.schema_by_guid(guid))

    def version(self, subject: str, version: int) -> RegisteredSchema:
        return self.run(self.core.version(subject, version))

    def latest(self, subject: str) -> RegisteredSchema:
        return self.run(self.core.latest(subject))

    def register(self, subject: str, schema: SchemaDefinition, *, normalize: bool = False) -> RegisteredSchema:
        return self.run(self.core.register(subject, schema, normalize))

    def lookup(self, subject: str, schema: SchemaDefinition, *, normalize: bool = False) -> RegisteredSchema:
        return self.run(self.core.lookup(subject, schema, normalize))

    def reference_texts(self, schema: SchemaDefinition) -> dict[str, str]:
        return self.run(self.core.reference_texts(schema))

    def rules_of(self, registered: RegisteredSchema) -> Rules:
        return self.run(self.core.rules_of(registered))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _perform(self, effect: Effect) -> Reply:
        if isinstance(effect, Pause):
            self._sleep(effect.seconds)
            return None
        return self._send(effect) if isinstance(effect, HttpRequest) else None

    def _send(self, request: HttpRequest) -> HttpResponse | NoResponse:
        import httpx

        bounded = Bounded(self.settings)
        try:
            with self._http.stream(
                request.method, request.url, headers=list(request.headers), content=request.body
            ) as response:
                if not all(bounded.add(chunk) for chunk in response.iter_bytes()):
                    return NoResponse("the response is too large or too slow")
                return HttpResponse(response.status_code, bounded.content())
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            return NoResponse(f"{type(error).__name__}: {error}")
