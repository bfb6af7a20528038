"""The `sasl.jaas.config` property of the Java client: a login module and its options."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from headgate.kafka_client.errors import InvalidProperty

_CONFIG: Final = re.compile(
    r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(?P<rest>.*?);?\s*\Z", re.S
)
_OPTION: Final = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"';]+))""")
_MODULES: Final = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAuthBearerLoginModule": ("OAUTHBEARER",),
}


@dataclass(frozen=True, slots=True)
class JaasConfig:
    mechanisms: tuple[str, ...] = ()
    """The SASL mechanisms that the login module implements."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def parse_jaas(text: str, prefix: str = "") -> JaasConfig:
    """Raises InvalidProperty. `prefix` precedes the property's name in the error message."""
    found = _CONFIG.match(text)
    module = found["module"].rpartition(".")[2] if found else ""
    if found is None or module not in _MODULES:
        problem = (
            "must name PlainLoginModule or ScramLoginModule (or OAuthBearerLoginModule), then: "
            'required username="..." password="...";'
        )
        raise InvalidProperty(f"{prefix}sasl.jaas.config", problem)
    options: dict[str, str] = {}
    for name, double, single, bare in _OPTION.findall(found["rest"]):
        options[name] = re.sub(r"\\(.)", r"\1", double or single) if double or single else bare
    return JaasConfig(_MODULES[module], options)
