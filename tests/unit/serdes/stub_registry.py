"""A minimal registry with httpx's mock transport, which records all requests."""

import json
import re
import uuid
from collections.abc import Callable
from urllib.parse import unquote

import httpx

ADDRESS = "http://stub"


class StubRegistry:
    def __init__(self) -> None:
        self.schemas: list[dict[str, object]] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[httpx.Request] = []
        self.intercept: Callable[[httpx.Request], httpx.Response | None] = lambda request: None

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self.handle)

    def paths(self) -> list[str]:
        return [f"{request.method} {request.url.raw_path.decode()}" for request in self.requests]

    def add(self, subject: str, schema: dict[str, object]) -> int:
        if schema not in self.schemas:
            self.schemas.append(schema)
        schema_id = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self.intercept(request) or self._answer(request)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode().partition("?")[0]
        if match := re.fullmatch(r"/schemas/ids/(\d+)", path):
            schema_id = int(match[1])
            if not 1 <= schema_id <= len(self.schemas):
                return error(404, 40403, f"Schema {schema_id} not found")
            more = {"maxId": len(self.schemas)} if "fetchMaxId" in request.url.params else {}
            return httpx.Response(200, json={**self.schemas[schema_id - 1], "guid": guid(schema_id), **more})
        if match := re.fullmatch(r"/schemas/guids/(.+)", path):
            found = next((n for n in range(1, len(self.schemas) + 1) if guid(n) == match[1]), None)
            return error(404, 40403, "no such guid") if found is None else self._schema(found)
        if match := re.fullmatch(r"/subjects/([^/]+)/versions/(\w+)", path):
            return self._version(unquote(match[1]), match[2])
        if match := re.fullmatch(r"/subjects/([^/]+)/versions", path):
            return httpx.Response(200, json={"id": self.add(unquote(match[1]), json.loads(request.content))})
        if match := re.fullmatch(r"/subjects/([^/]+)", path):
            return self._lookup(unquote(match[1]), json.loads(request.content))
        return error(404, 404, "HTTP 404 Not Found")

    def _schema(self, schema_id: int) -> httpx.Response:
        return httpx.Response(200, json=self.schemas[schema_id - 1])

    def _version(self, subject: str, version: str) -> httpx.Response:
        ids = self.subjects.get(subject, [])
        number = len(ids) if version == "latest" else int(version)
        if not 1 <= number <= len(ids):
            return error(404, 40402 if ids else 40401, "not found")
        schema_id = ids[number - 1]
        body = {"subject": subject, "version": number, "id": schema_id, "guid": guid(schema_id)}
        return httpx.Response(200, json={**body, **self.schemas[schema_id - 1]})

    def _lookup(self, subject: str, schema: dict[str, object]) -> httpx.Response:
        ids = self.subjects.get(subject, [])
        number = next((n for n, known in enumerate(ids, 1) if self.schemas[known - 1] == schema), 0)
        return self._version(subject, str(number)) if number else error(404, 40403, "Schema not found")


def guid(schema_id: int) -> str:
    return str(uuid.UUID(int=0xABC0 + schema_id))


def error(status: int, code: int, message: str) -> httpx.Response:
    return httpx.Response(status, json={"error_code": code, "message": message})
