"""Error tables and exception handlers."""

import asyncio
import logging
from typing import Any

import orjson
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headgate.web.errors import ErrorTable
from headgate.web.exception_handlers import exception_handlers, without_framework

SCOPE: dict[str, Any] = {"type": "http", "method": "GET", "path": "/x", "query_string": b"", "headers": []}


class Missing(Exception): ...


class MissingTopic(Missing): ...


class Broken(Exception): ...


TABLE = ErrorTable({Missing: (404, 40401), Broken: (503, 50302)})


def handled(error: Exception, *, logs_server_errors: bool = False) -> tuple[int, dict[str, str], Any]:
    handlers = exception_handlers(
        (Missing, Broken),
        status_of=TABLE.status_of,
        headers_of=lambda error: [(b"retry-after", b"1")] if isinstance(error, Broken) else [],
        media_type_of=lambda scope: "application/vnd.test+json",
        methods_of=lambda scope: {"PUT", "GET"},
        logs_server_errors=logs_server_errors,
    )

    async def fail(request: Request) -> Response:
        raise error

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError

    async def call() -> None:
        await without_framework(fail, handlers)(dict(SCOPE), receive, send)

    asyncio.run(call())
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, orjson.loads(sent[1]["body"])


def test_a_subclass_has_the_status_of_its_base_class() -> None:
    assert TABLE.status_of(MissingTopic()) == (404, 40401)
    assert TABLE.status_of(ValueError()) == (500, 500)


def test_an_error_has_its_status_code_message_media_type_and_headers() -> None:
    status, headers, body = handled(Broken("no broker"))
    assert (status, body) == (503, {"error_code": 50302, "message": "no broker"})
    assert headers["content-type"] == "application/vnd.test+json"
    assert headers["retry-after"] == "1"
    assert handled(MissingTopic("gone"))[2] == {"error_code": 40401, "message": "gone"}


def test_a_405_lists_the_methods_of_the_path() -> None:
    status, headers, body = handled(HTTPException(405))
    assert (status, headers["allow"]) == (405, "GET, PUT")
    assert body == {"error_code": 405, "message": "HTTP 405 Method Not Allowed"}


def test_an_unexpected_error_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    status, _, body = handled(ZeroDivisionError("secret"))
    assert (status, body) == (500, {"error_code": 500, "message": "Internal Server Error"})
    assert "secret" in caplog.text


@pytest.mark.parametrize("logs_server_errors", [True, False])
def test_server_errors_are_logged_on_request(logs_server_errors: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    handled(Broken("no broker"), logs_server_errors=logs_server_errors)
    assert ("no broker" in caplog.text) is logs_server_errors
