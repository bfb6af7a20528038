import pytest

from headgate.gateway.cli.consume import parse_start
from headgate.gateway.cli.errors import UsageError
from headgate.gateway.kafka.consuming import Start

NOW_MS = 10_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beginning", Start(beginning=True)),
        ("earliest", Start(beginning=True)),
        ("end", Start(end=True)),
        ("42", Start(offset=42)),
        ("-20", Start(last=20)),
        ("-0", Start(last=0)),
        ("@5", Start(timestamp_ms=5)),
        ("@1h", Start(timestamp_ms=NOW_MS - 3_600_000)),
        ("1970-01-02", Start(timestamp_ms=86_400_000)),
    ],
)
def test_a_place_to_start_has_many_spellings(text: str, expected: Start) -> None:
    assert parse_start(text, NOW_MS) == expected


@pytest.mark.parametrize("text", ["", "start of day", "--5", "@", "1.5"])
def test_a_malformed_start_position_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="not a start position"):
        parse_start(text, NOW_MS)
