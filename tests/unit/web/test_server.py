"""Server start and stop in a child process."""

import subprocess
import sys
import urllib.request

import pytest

from headgate.web.server import split_listen_address
from headgate.web.settings import InvalidSetting

PROGRAM = """
import sys
from headgate.web.access import Access
from headgate.web.application import Application
from headgate.web.metrics import HttpMetrics
from headgate.web.responses import send_response
from headgate.web.server import ServerOptions, run, serve
from headgate.web.settings import AccessSettings

async def app(scope, receive, send):
    if scope["type"] == "http":
        await send_response(send, 200, b"served", "text/plain")

def begin_stop():
    print("stopping", flush=True)

async def main():
    application = Application(
        app,
        Access(AccessSettings(), ""),
        lambda scope: "application/json",
        routes=(),
        begin_stop=begin_stop,
        metrics=HttpMetrics("test"),
    )
    await serve(application, ServerOptions("127.0.0.1", 0, grace_seconds=1, stop_at_eof=True))
    print("not reached after a signal", flush=True)

sys.exit(run("test", main()))
"""


def test_a_server_stops_when_standard_input_ends() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stderr is not None
        address = server.stderr.readline().strip().removeprefix("listening on ")
        with urllib.request.urlopen(address, timeout=30) as response:
            assert response.read() == b"served"
        server.stdin.write("ignored")
        server.stdin.flush()
        out, _ = server.communicate(timeout=60)
    assert server.returncode == 0
    assert out == "stopping\n"


def test_a_listen_address_has_a_host_and_a_port() -> None:
    assert split_listen_address("127.0.0.1:8081") == ("127.0.0.1", 8081)
    assert split_listen_address("[::1]:0") == ("::1", 0)


@pytest.mark.parametrize("text", ["localhost", "localhost:http", "localhost:65536", ""])
def test_an_invalid_listen_address_is_rejected(text: str) -> None:
    with pytest.raises(InvalidSetting, match="HOST:PORT"):
        split_listen_address(text)
