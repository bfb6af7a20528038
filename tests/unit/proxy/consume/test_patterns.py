import pytest

from headgate.proxy.consumers.patterns import check_pattern, matching
from headgate.proxy.errors import BadRequest

TOPICS = ["__consumer_offsets", "orders", "orders.dead", "users"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("orders", ["orders"]),
        ("orders.*", ["orders", "orders.dead"]),
        (".*s", ["orders", "users"]),
        ("__consumer_offsets", ["__consumer_offsets"]),
        ("order", []),
    ],
)
def test_patterns_match_whole_names(pattern: str, expected: list[str]) -> None:
    assert matching(pattern, TOPICS) == expected


@pytest.mark.parametrize("pattern", ["(", "[", "*", "x" * 1001])
def test_an_invalid_regular_expression_is_rejected(pattern: str) -> None:
    with pytest.raises(BadRequest):
        check_pattern(pattern)


def test_a_pattern_with_exponential_time_is_rejected() -> None:
    with pytest.raises(BadRequest, match="too long"):
        matching("(a|aa)+[A-Z]", ["a" * 249])
