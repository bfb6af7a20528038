"""The page that browsers get at `/`: what the service is, what to try, and all operations of its OpenAPI documents.

Only requests whose Accept header contains `text/html` get it, so API clients keep their response.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from string import Template
from typing import Final

from headgate.openapi.documents import document
from headgate.web.asgi import Scope, Send
from headgate.web.responses import send_response, without_body

_PAGE: Final = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>$title</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
  pre, code { font: 14px/1.5 ui-monospace, monospace; }
  pre { background: #8881; padding: .8rem; overflow-x: auto; }
  td { padding: .1rem 1rem .1rem 0; vertical-align: top; }
  :root { color-scheme: light dark; }
</style>
<h1>$title</h1>
<p>$text</p>
<h2>Try</h2>
<pre>$examples</pre>
<h2>Links</h2>
<ul>
<li><a href="health">health</a> and <a href="metrics">metrics</a></li>
<li>OpenAPI: $documents</li>
<li>Documentation: <code>$guide</code> in the repository and on the documentation site (<code>make docs</code>)</li>
</ul>
<h2>Operations</h2>
<table>
$operations
</table>
</html>
""")

# The documents are ours: two spaces per level, paths at the first level, methods at the second.
_OPERATION: Final = re.compile(r"^  (/\S*):$|^    (get|put|post|delete|patch):$|^      summary: (.+)$", re.MULTILINE)
_HEADERS: Final = (
    (b"vary", b"accept"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
)


@dataclass(frozen=True)
class LandingPage:
    title: str
    text: str
    guide: str
    """The page of the documentation, such as docs/registry.md."""
    documents: tuple[str, ...]
    """Names of OpenAPI documents. Each is served at /openapi/NAME.yaml."""
    examples: tuple[str, ...]
    """Paths for curl."""

    async def answer(self, scope: Scope, send: Send) -> bool:
        """Send the page or a document. False if the request is for neither."""
        if scope["method"] not in ("GET", "HEAD"):
            return False
        path = scope["path"]
        if path == "/" and _accepts_html(scope):
            body, media_type = self._page(_origin(scope)), "text/html; charset=utf-8"
        elif (name := _document_name(path)) in self.documents:
            body, media_type = document(name).encode(), "application/yaml"
        else:
            return False
        send = without_body(send) if scope["method"] == "HEAD" else send
        await send_response(send, 200, body, media_type, _HEADERS)
        return True

    def _page(self, origin: str) -> bytes:
        links = (f'<a href="openapi/{name}.yaml">{name}.yaml</a>' for name in self.documents)
        return _PAGE.substitute(
            title=escape(self.title),
            text=escape(self.text),
            guide=escape(self.guide),
            examples=escape("\n".join(f"curl {origin}{path}" for path in self.examples)),
            documents=", ".join(links),
            operations=_operations(self.documents),
        ).encode()


def _accepts_html(scope: Scope) -> bool:
    return any(name == b"accept" and b"text/html" in value.lower() for name, value in scope["headers"])


def _origin(scope: Scope) -> str:
    """The address that the browser used. The access check has accepted its Host header."""
    host = next((value for name, value in scope["headers"] if name == b"host"), b"127.0.0.1")
    return f"{scope['scheme']}://{host.decode('latin-1')}"


def _document_name(path: str) -> str:
    return path.removeprefix("/openapi/").removesuffix(".yaml") if path.startswith("/openapi/") else ""


@cache
def _operations(documents: Sequence[str]) -> str:
    rows = (row for name in documents for row in _rows(document(name)))
    return "\n".join(
        f"<tr><td><code>{method.upper()}</code><td><code>{escape(path)}</code><td>{escape(summary)}"
        for method, path, summary in rows
    )


def _rows(text: str) -> Iterator[tuple[str, str, str]]:
    """Method, path and summary of each operation."""
    path = method = ""
    for match in _OPERATION.finditer(text):
        if match[1]:
            path = match[1]
        elif match[2]:
            method = match[2]
        else:
            yield method, path, match[3].strip("'\"")
