"""The plain ASGI path in front of FastAPI, for what is asked thousands of times a second: produce."""

import logging
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from openapi.errors import error_body
from proxy.api.answers import V2_JSON, App, Receive, Scope, Send, send_answer, send_error
from proxy.api.v2.produce import ProduceV2
from proxy.errors import ProxyError
from proxy.services import Services

_log: Final = logging.getLogger(__name__)
_V2_PRODUCE: Final = re.compile(rb"/topics/([^/]+)(?:/partitions/([0-9]{1,9}))?/?\Z")


class Front:
    def __init__(self, app: App, services: Services) -> None:
        self._app = app
        self._produce_v2 = ProduceV2(services)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            match = _V2_PRODUCE.match(scope["raw_path"])
            if match is not None:
                await self._v2_produce(match, scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _v2_produce(self, match: re.Match[bytes], scope: Scope, receive: Receive, send: Send) -> None:
        topic = unquote_to_bytes(match[1]).decode(errors="replace")
        partition = int(match[2]) if match[2] is not None else None
        try:
            body, media_type = await self._produce_v2.answer(scope, receive, topic, partition)
        except ProxyError as error:
            await send_error(send, error, V2_JSON)
        except Exception:
            _log.exception("produce to %s", topic)
            await send_answer(send, 500, error_body(500, "Internal Server Error"), V2_JSON)
        else:
            await send_answer(send, 200, body, media_type)
