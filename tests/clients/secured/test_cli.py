"""The command line against Apache Kafka with TLS and SASL."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.clients.cli.conftest import Cli
from tests.clients.cli.launcher import Launcher
from tests.live.certificates import authority
from tests.live.ports import free_port
from tests.live.secured_kafka import SecuredKafka, unsecured_token

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

UNREACHABLE = 4


Run = Callable[[str], Cli]


@pytest.fixture
def cli(secured_kafka: SecuredKafka, launcher: Launcher, tmp_path: Path) -> Run:
    """The command line for the listener of a protocol."""
    return lambda protocol: Cli(secured_kafka.address(protocol), tmp_path, launcher)


@pytest.mark.parametrize(
    ("protocol", "mechanism"), [("SASL_SSL", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-512"), ("SSL", ""), ("PLAINTEXT", "")]
)
def test_topics_records_and_groups(cli: Run, secured_kafka: SecuredKafka, protocol: str, mechanism: str) -> None:
    run = cli(protocol)
    properties = secured_kafka.properties(protocol, mechanism)
    # Files of Java clients contain properties that the command line does not use.
    properties |= {"acks": "all", "bootstrap.servers": "elsewhere:1"}
    config = str(secured_kafka.config_file(f"{protocol}{mechanism}", properties))
    topic = f"cli-{protocol}-{mechanism}".lower()
    run("topic", "create", topic, "-p", "2", HEADGATE_KAFKA_CONFIG=config)
    run("produce", topic, "-p", "1", stdin=b"one\ntwo\n", HEADGATE_KAFKA_CONFIG=config)
    assert run("consume", topic, "-e", HEADGATE_KAFKA_CONFIG=config).lines == ["one", "two"]
    assert run("consume", topic, "-g", f"{topic}-group", "-n", "1", HEADGATE_KAFKA_CONFIG=config).lines == ["one"]
    described = json.loads(run("group", "describe", f"{topic}-group", "--json", HEADGATE_KAFKA_CONFIG=config).out)
    assert {each["partition"]: each["lag"] for each in described["partitions"]}[1] == 1
    run("topic", "list", "--kafka-config", config)


@pytest.mark.parametrize(
    ("listener", "protocol", "reason", "advice"),
    [
        ("SASL_SSL", "PLAINTEXT", "uses TLS, but this client does not", "security.protocol to SSL or SASL_SSL"),
        ("SSL", "PLAINTEXT", "uses TLS, but this client does not", "security.protocol to SSL or SASL_SSL"),
        ("SASL_PLAINTEXT", "PLAINTEXT", "requires SASL", "security.protocol to SASL_PLAINTEXT"),
        ("PLAINTEXT", "SSL", "TLS handshake", "PLAINTEXT"),
        ("PLAINTEXT", "SASL_PLAINTEXT", "does not use SASL", "security.protocol to PLAINTEXT"),
        ("SASL_PLAINTEXT", "SASL_SSL", "TLS handshake", "SASL_PLAINTEXT"),
    ],
)
def test_a_wrong_protocol_is_explained(
    cli: Run, secured_kafka: SecuredKafka, listener: str, protocol: str, reason: str, advice: str
) -> None:
    config = secured_kafka.config_file(f"wrong-{protocol}", secured_kafka.properties(protocol))
    failed = cli(listener)("topic", "list", "--kafka-config", str(config), code=UNREACHABLE)
    assert reason in failed.err
    assert advice in failed.err.partition("try:")[2]


def test_rejected_credentials_and_certificates_are_explained(
    cli: Run, secured_kafka: SecuredKafka, tmp_path: Path
) -> None:
    def failure(protocol: str, properties: dict[str, str], host: str = "127.0.0.1") -> str:
        config = secured_kafka.config_file("rejected", properties)
        address = f"{host}:{secured_kafka.ports[protocol]}"
        return cli(protocol)("topic", "list", "-b", address, "--kafka-config", str(config), code=UNREACHABLE).err

    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        wrong = failure("SASL_SSL", secured_kafka.properties("SASL_SSL", mechanism, "wrong-password"))
        assert "rejects user 'reader'" in wrong
        assert "check sasl.username" in wrong
        assert "wrong-password" not in wrong
    trusted = secured_kafka.properties("SASL_SSL")
    stranger = authority(tmp_path, "stranger").certificate()
    assert "ssl.ca.location" in failure("SASL_SSL", {**trusted, "ssl.ca.location": str(stranger)})
    assert "use a host name that the certificate contains" in failure("SASL_SSL", trusted, "localhost")
    without = {**secured_kafka.properties("SSL")}
    del without["ssl.certificate.location"], without["ssl.key.location"]
    assert "set ssl.certificate.location" in failure("SSL", without)


def test_an_invalid_config_file_is_a_usage_error(cli: Run, secured_kafka: SecuredKafka) -> None:
    run = cli("SASL_SSL")
    config = secured_kafka.config_file("invalid", {"security.protocol": "SASL_SSL"})
    assert "sasl.mechanism" in run("topic", "list", "--kafka-config", str(config), code=2).err
    assert "cannot read the file" in run("topic", "list", "--kafka-config", "missing", code=2).err


@contextmanager
def token_endpoint() -> Iterator[tuple[str, list[str]]]:
    """An OAuth token endpoint, and the requests that it received."""
    received: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            received.append(f"{self.headers['authorization']} {body}")
            answer = json.dumps({"access_token": unsecured_token("robot"), "expires_in": 600}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", free_port()), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/token", received
    server.shutdown()
    server.server_close()


def test_oauth_tokens_come_from_the_token_endpoint(cli: Run, secured_kafka: SecuredKafka) -> None:
    run = cli("SASL_PLAINTEXT")
    common = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    with token_endpoint() as (url, received):
        credentials = {
            "sasl.oauthbearer.token.endpoint.url": url,
            "sasl.oauthbearer.client.id": "robot",
            "sasl.oauthbearer.client.secret": "s3cret",
            "sasl.oauthbearer.scope": "kafka",
        }
        config = secured_kafka.config_file("oauth", common | credentials)
        run("topic", "list", "--kafka-config", str(config))
    assert received[0] == "Basic cm9ib3Q6czNjcmV0 grant_type=client_credentials&scope=kafka"
    # The endpoint is gone now.
    failed = run("topic", "list", "--kafka-config", str(config), code=UNREACHABLE)
    assert "no token from http://127.0.0.1" in failed.err
    expired = common | {"sasl.oauthbearer.token": unsecured_token("robot", -60)}
    failed = run("topic", "list", "--kafka-config", str(secured_kafka.config_file("old", expired)), code=UNREACHABLE)
    assert "rejects the OAUTHBEARER token" in failed.err
