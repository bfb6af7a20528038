"""The plain ASGI path in front of FastAPI, for what is asked thousands of times a second: produce."""

import logging
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from openapi.errors import error_body
from proxy.api.answers import JSON, V2_JSON, App, Receive, Scope, Send, send_answer, send_error
from proxy.api.v2.produce import ProduceV2
from proxy.api.v3.produce import ProduceV3
from proxy.errors import ProxyError
from proxy.services import Services

_log: Final = logging.getLogger(__name__)
_V2_PRODUCE: Final = re.compile(rb"/topics/([^/]+)(?:/partitions/([0-9]{1,9}))?/?\Z")
_V3_PRODUCE: Final = re.compile(rb"/v3/clusters/([^/]+)/topics/([^/]+)/records(:batch)?/?\Z")


class Front:
    def __init__(self, app: App, services: Services) -> None:
        self._app = app
        self._v2 = ProduceV2(services)
        self._v3 = ProduceV3(services)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            path: bytes = scope["raw_path"]
            match = _V2_PRODUCE.match(path)
            if match is not None:
                await self._produce_v2(match, scope, receive, send)
                return
            match = _V3_PRODUCE.match(path)
            if match is not None:
                await self._produce_v3(match, receive, send)
                return
        await self._app(scope, receive, send)

    async def _produce_v2(self, match: re.Match[bytes], scope: Scope, receive: Receive, send: Send) -> None:
        topic = _text(match[1])
        partition = int(match[2]) if match[2] is not None else None
        try:
            body, media_type = await self._v2.answer(scope, receive, topic, partition)
        except ProxyError as error:
            await send_error(send, error, V2_JSON)
        except Exception:
            await _failed(send, topic, V2_JSON)
        else:
            await send_answer(send, 200, body, media_type)

    async def _produce_v3(self, match: re.Match[bytes], receive: Receive, send: Send) -> None:
        cluster_id, topic = _text(match[1]), _text(match[2])
        try:
            if match[3] is not None:
                await self._v3.batch(cluster_id, topic, receive, send)
            else:
                await self._v3.stream(cluster_id, topic, receive, send)
        except ProxyError as error:
            await send_error(send, error, JSON)
        except Exception:
            await _failed(send, topic, JSON)


def _text(quoted: bytes) -> str:
    return unquote_to_bytes(quoted).decode(errors="replace")


async def _failed(send: Send, topic: str, media_type: str) -> None:
    _log.exception("produce to %s", topic)
    await send_answer(send, 500, error_body(500, "Internal Server Error"), media_type)
