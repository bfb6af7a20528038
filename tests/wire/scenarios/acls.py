"""ACL requests to a broker without an authorizer."""

from tests.wire.entities import Plain
from tests.wire.transcript import Wire

ANY = 1
TOPIC, GROUP = 2, 3
LITERAL, PREFIXED = 3, 4
READ, WRITE = 3, 4
ALLOW = 3


def _binding(name: str, **changes: object) -> Plain:
    return {
        "resource_type": TOPIC,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
        **changes,
    }


def _filter(**changes: object) -> Plain:
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
        **changes,
    }


def describe_acls(wire: Wire) -> None:
    for version in range(1, 4):
        wire.ask("describe_acls", version, _filter())
    named = _filter(resource_type_filter=TOPIC, resource_name_filter="orders", pattern_type_filter=LITERAL)
    wire.ask("describe_acls", 3, named, label="of one topic")


def create_acls(wire: Wire) -> None:
    for version in range(1, 4):
        wire.ask("create_acls", version, {"creations": [_binding("orders")]})
    two = [_binding("orders"), _binding("pay", resource_type=GROUP, resource_pattern_type=PREFIXED, operation=WRITE)]
    wire.ask("create_acls", 3, {"creations": two}, label="two of them")
    wire.ask("create_acls", 3, {"creations": []}, label="none")


def delete_acls(wire: Wire) -> None:
    for version in range(1, 4):
        wire.ask("delete_acls", version, {"filters": [_filter()]})
    two = [_filter(), _filter(resource_type_filter=TOPIC, resource_name_filter="orders")]
    wire.ask("delete_acls", 3, {"filters": two}, label="two filters")
    wire.ask("delete_acls", 3, {"filters": []}, label="no filter")
