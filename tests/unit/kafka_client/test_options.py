import pytest

from headgate.kafka_client.errors import InvalidProperty
from headgate.kafka_client.options import Address, parse_servers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:9092", [Address("127.0.0.1", 9092)]),
        ("kafka", [Address("kafka", 9092)]),
        ("a:1, b.example:65535", [Address("a", 1), Address("b.example", 65535)]),
        ("[::1]:19092", [Address("::1", 19092)]),
        ("[::1]", [Address("::1", 9092)]),
    ],
)
def test_addresses_are_hosts_with_or_without_ports(text: str, expected: list[Address]) -> None:
    assert parse_servers(text) == tuple(expected)


@pytest.mark.parametrize("text", ["", ",", "a,", ":9092", "a:b", "a:0", "a:65536", ":::", "http://a:1", "a b", "[::1"])
def test_an_invalid_address_is_rejected(text: str) -> None:
    with pytest.raises(InvalidProperty):
        parse_servers(text)
