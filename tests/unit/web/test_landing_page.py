import asyncio
from typing import Any

import pytest
import yaml

from headgate.openapi.documents import document
from headgate.web.landing_page import LandingPage

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
PAGE = LandingPage("A <title>", "Text", "docs/x.md", ("registry", "proxy_v2"), ("/subjects",))


def request(path: str, accept: str = BROWSER, method: str = "GET", host: str = "localhost:8081") -> list[Any]:
    """The ASGI messages of the page, empty if it leaves the request to the API."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"accept", accept.encode()), (b"host", host.encode())]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "scheme": "http"}
    assert asyncio.run(PAGE.answer(scope, send)) is bool(sent)
    return sent


def test_a_browser_gets_a_page_with_examples_and_every_operation() -> None:
    start, body = request("/")
    assert start["status"] == 200
    headers = dict(start["headers"])
    assert headers[b"content-type"] == b"text/html; charset=utf-8"
    text = body["body"].decode()
    assert "curl http://localhost:8081/subjects" in text
    assert "A &lt;title&gt;" in text
    assert 'href="openapi/proxy_v2.yaml"' in text
    for name in PAGE.documents:
        for path, operations in yaml.safe_load(document(name))["paths"].items():
            for method in operations.keys() - {"parameters"}:
                assert f"<code>{method.upper()}</code><td><code>{path}</code>" in text
    assert text.count("<tr>") == sum(document(name).count("operationId:") for name in PAGE.documents)


@pytest.mark.parametrize("accept", ["*/*", "", "application/json", "application/vnd.schemaregistry.v1+json, */*"])
def test_an_api_client_gets_the_response_of_the_api(accept: str) -> None:
    assert request("/", accept) == []


@pytest.mark.parametrize(("path", "method"), [("/", "POST"), ("/subjects", "GET"), ("/openapi/proxy_v3.yaml", "GET")])
def test_other_requests_are_left_to_the_api(path: str, method: str) -> None:
    assert request(path, method=method) == []


def test_a_host_header_cannot_add_markup() -> None:
    assert b"<script>" not in request("/", host="x<script>")[1]["body"]


def test_the_openapi_documents_are_served_and_head_has_no_body() -> None:
    start, body = request("/openapi/registry.yaml", accept="*/*")
    assert dict(start["headers"])[b"content-type"] == b"application/yaml"
    assert body["body"].decode() == document("registry")
    assert request("/", method="HEAD")[1]["body"] == b""
