"""A stub registry on a real socket that counts the requests of executors, which are separate processes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from tests.live.ports import free_port
from tests.unit.serdes.stub_registry import StubRegistry


@contextmanager
def counting_registry(stub: StubRegistry) -> Iterator[str]:
    """The address of the stub."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            url = f"http://stub{self.path}"
            response = stub.handle(httpx.Request(self.command, url, content=self.rfile.read(length)))
            self.send_response(response.status_code)
            self.send_header("content-length", str(len(response.content)))
            self.end_headers()
            self.wfile.write(response.content)

        do_GET = do_POST = answer

        def log_message(self, format: str, *args: object) -> None:
            """Requests are counted, not written."""

    server = ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
