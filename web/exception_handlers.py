"""Exceptions to error responses, for FastAPI and for handlers that run without it."""

import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headgate.web.asgi import App, Receive, Scope, Send
from headgate.web.errors import INTERNAL_SERVER_ERROR, REASONS, ErrorStatus, error_body

_log: Final = logging.getLogger(__name__)

Handler: TypeAlias = Callable[..., Coroutine[Any, Any, Response]]
ExceptionHandlers: TypeAlias = dict[int | type[Exception], Handler]
Headers: TypeAlias = Sequence[tuple[bytes, bytes]]


def exception_handlers(
    errors: Iterable[type[Exception]],
    *,
    status_of: Callable[[Any], ErrorStatus],
    headers_of: Callable[[Any], Headers],
    media_type_of: Callable[[Scope], str],
    methods_of: Callable[[Scope], set[str]],
    logs_server_errors: bool,
) -> ExceptionHandlers:
    """Handlers for the exceptions of one API (`errors`), of Starlette, and for unexpected ones.

    `methods_of` returns the methods of a path, for the Allow header. `logs_server_errors` logs `errors` that have a
    status from 500.
    """

    def response(request: Request, status: int, code: int, message: str) -> Response:
        # Not `media_type`, to which Starlette adds a charset for some types.
        headers = {"content-type": media_type_of(request.scope)}
        return Response(error_body(code, message), status_code=status, headers=headers)

    async def handle_error(request: Request, error: Exception) -> Response:
        status, code = status_of(error)
        if logs_server_errors and status >= 500:
            _log.error("%s %s: %s", request.method, request.url.path, error)
        handled = response(request, status, code, str(error))
        handled.raw_headers.extend(headers_of(error))
        return handled

    async def handle_http_exception(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status = error.status_code
        handled = response(request, status, status, REASONS.get(status, error.detail))
        if error.headers:
            handled.headers.update(error.headers)
        if status == 405:
            handled.headers["allow"] = ", ".join(sorted(methods_of(request.scope)))
        return handled

    async def handle_unexpected(request: Request, error: Exception) -> Response:
        _log.exception("%s %s", request.method, request.url.path, exc_info=error)
        return response(request, 500, 500, INTERNAL_SERVER_ERROR)

    return {
        **dict.fromkeys(errors, handle_error),
        HTTPException: handle_http_exception,
        Exception: handle_unexpected,
    }


def without_framework(handler: Handler, handlers: ExceptionHandlers) -> App:
    """An ASGI application that calls `handler` directly. FastAPI's routing costs as much as a fast handler."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response: Response = await handler(request)
        except Exception as error:
            kind = next(kind for kind in type(error).__mro__ if kind in handlers)
            response = await handlers[kind](request, error)
        await response(scope, receive, send)

    return app
