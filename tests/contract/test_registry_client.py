"""The registry client with real sockets: TLS, a hanging server, a slow server, an absent server."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from headgate.serdes import (
    AsyncRegistryClient,
    Deserializer,
    Poison,
    Reason,
    RegistryClient,
    RegistrySettings,
    RegistryUnavailable,
    TlsSettings,
)
from tests.live.ports import free_port

PATIENCE_SECONDS = 0.3


class Registry(BaseHTTPRequestHandler):
    """Returns schema 1, hangs for 2, sends 3 slowly."""

    protocol_version = "HTTP/1.1"
    released = threading.Event()

    def do_GET(self) -> None:
        if self.path.endswith("/2"):
            self.released.wait(10)
            return
        body = b'{"schema": "\\"string\\""}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) if not self.path.endswith("/3") else 1000))
        self.end_headers()
        if self.path.endswith("/3"):
            for _ in range(100):
                if self.released.wait(0.05):
                    return
                try:
                    self.wfile.write(b" ")
                except OSError:
                    return
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """No log output."""


def serve(context: ssl.SSLContext | None = None) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", free_port()), Registry)
    server.daemon_threads = True
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]  # a refused handshake is expected
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    Registry.released.clear()
    yield f"{'https' if context else 'http'}://127.0.0.1:{server.server_address[1]}"
    Registry.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def plain() -> Iterator[str]:
    yield from serve()


def certificate(folder: Path, name: str, issuer: tuple[Any, Any] | None = None) -> tuple[Any, Any]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if issuer:
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer[1].public_key()), critical=False
        )
    made = builder.sign(issuer[1] if issuer else key, hashes.SHA256())
    (folder / f"{name}.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return made, key


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    authority = certificate(tmp_path, "authority")
    certificate(tmp_path, "server", authority)
    certificate(tmp_path, "client", authority)
    return tmp_path


@pytest.fixture
def mutual_tls(certificates: Path) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    context.load_verify_locations(certificates / "authority.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    yield from serve(context)


def test_client_and_server_authenticate_with_certificates(mutual_tls: str, certificates: Path) -> None:
    tls = TlsSettings(
        ca_file=str(certificates / "authority.pem"),
        certificate_file=str(certificates / "client.pem"),
        key_file=str(certificates / "client.key"),
    )
    settings = RegistrySettings((mutual_tls,), tls=tls, attempts_max=1)
    with RegistryClient(settings) as client:
        assert client.schema_by_id(1).definition.text == '"string"'

    async def main() -> None:
        async with AsyncRegistryClient(settings) as registry:
            assert (await registry.schema_by_id(1)).definition.text == '"string"'

    asyncio.run(main())


def test_a_server_with_an_untrusted_certificate_is_rejected(mutual_tls: str) -> None:
    with (
        RegistryClient(RegistrySettings((mutual_tls,), attempts_max=1)) as client,
        pytest.raises(RegistryUnavailable, match=r"(?i)certificate"),
    ):
        client.schema_by_id(1)


@pytest.mark.parametrize("schema_id", [2, 3], ids=["hangs", "drips"])
def test_a_slow_registry_times_out(plain: str, schema_id: int) -> None:
    settings = RegistrySettings((plain,), timeout_seconds=PATIENCE_SECONDS, attempts_max=1)
    with RegistryClient(settings) as client:
        outcome = Deserializer(client).decode(b"\x00\x00\x00\x00" + bytes([schema_id]) + b"x")
    assert isinstance(outcome, Poison)
    assert outcome.reason == Reason.REGISTRY_UNAVAILABLE

    async def main() -> None:
        async with AsyncRegistryClient(settings) as registry:
            with pytest.raises(RegistryUnavailable):
                await registry.schema_by_id(schema_id)

    asyncio.run(main())


def test_the_address_that_responds_is_found_among_dead_ones(plain: str) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    with RegistryClient(RegistrySettings((dead, plain))) as client:
        assert client.schema_by_id(1).id == 1
    with (
        RegistryClient(RegistrySettings((dead,), backoff_seconds=0.01)) as client,
        pytest.raises(RegistryUnavailable, match="ConnectError"),
    ):
        client.schema_by_id(1)
