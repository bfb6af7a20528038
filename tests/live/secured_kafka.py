"""One Apache Kafka node with a listener for each security protocol: SASL_SSL, SASL_PLAINTEXT, SSL and PLAINTEXT.

The SSL listener requires a client certificate. The SASL listeners accept PLAIN, SCRAM and OAUTHBEARER; the tokens are
unsecured JSON Web Tokens, which Kafka accepts by default.
"""

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.live.apache_kafka import SHORT_LIVED, KafkaNode
from tests.live.certificates import LOOPBACK, authority
from tests.live.ports import free_port

USER, PASSWORD = "reader", "open sesame"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PROTOCOLS = ("SASL_SSL", "SASL_PLAINTEXT", "SSL", "PLAINTEXT")
LOGIN_MODULE = "org.apache.kafka.common.security"
PLAIN_MODULE = f"{LOGIN_MODULE}.plain.PlainLoginModule required"
SCRAM_MODULE = f"{LOGIN_MODULE}.scram.ScramLoginModule required"
OAUTH_CLAIM = 'unsecuredLoginStringClaim_sub="broker"'
OAUTH_MODULE = f"{LOGIN_MODULE}.oauthbearer.OAuthBearerLoginModule required"


@dataclass(frozen=True, slots=True)
class SecuredKafka:
    node: KafkaNode
    ports: Mapping[str, int]
    folder: Path
    ca_file: Path
    client_file: Path
    """Key and certificate of a client."""

    def address(self, protocol: str) -> str:
        return f"127.0.0.1:{self.ports[protocol]}"

    def properties(self, protocol: str, mechanism: str = "PLAIN", password: str = PASSWORD) -> dict[str, str]:
        """Return client properties with librdkafka's names."""
        given = {"security.protocol": protocol}
        if protocol.endswith("SSL"):
            given["ssl.ca.location"] = str(self.ca_file)
        if protocol == "SSL":
            given |= {"ssl.certificate.location": str(self.client_file), "ssl.key.location": str(self.client_file)}
        if protocol.startswith("SASL"):
            given |= {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": password}
        return given

    def config_file(self, name: str, properties: Mapping[str, str]) -> Path:
        path = self.folder / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8")
        return path


def unsecured_token(user: str, lifetime_seconds: int = 600) -> str:
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": user, "iat": now, "exp": now + lifetime_seconds})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join(encoded) + "."


def new_secured_kafka(folder: Path) -> SecuredKafka:
    """Create a node without starting it. Call `node.start()` to start it."""
    ours = authority(folder, "authority")
    ca_file, client_file = ours.certificate(), ours.issue("client")
    scram = [f"{mechanism}=[name={USER},password={PASSWORD}]" for mechanism in MECHANISMS[1:]]
    arguments = [word for one in scram for word in ("--add-scram", one)]
    node = KafkaNode(folder / "node", flags=SHORT_LIVED, format_arguments=arguments)
    ports = {protocol: node.port if protocol == "PLAINTEXT" else free_port() for protocol in PROTOCOLS}
    listeners = [f"{protocol}://127.0.0.1:{port}" for protocol, port in ports.items()]
    node._settings |= {
        "listeners": ",".join([*listeners, f"CONTROLLER://127.0.0.1:{node.controller_port}"]),
        "advertised.listeners": ",".join(listeners),
        "listener.security.protocol.map": ",".join(["CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in PROTOCOLS)]),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join([*MECHANISMS, "OAUTHBEARER"]),
        "listener.name.ssl.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(ours.issue("broker", [LOOPBACK])),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(ca_file),
    }
    for listener in ("sasl_ssl", "sasl_plaintext"):
        users = f'user_admin="x" user_{USER}="{PASSWORD}"'
        node._settings |= {
            f"listener.name.{listener}.plain.sasl.jaas.config": (
                f'{PLAIN_MODULE} username="admin" password="x" {users};'
            ),
            f"listener.name.{listener}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE};",
            f"listener.name.{listener}.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE};",
            f"listener.name.{listener}.oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} {OAUTH_CLAIM};",
        }
    return SecuredKafka(node, ports, folder, ca_file, client_file)
