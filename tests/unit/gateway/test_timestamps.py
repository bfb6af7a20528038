import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.gateway.timestamps import InvalidTimestamp, parse_duration, parse_timestamp

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1700000000000", 1_700_000_000_000),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:01.5", 1500),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01T00:00:00Z", 0),
        ("2h", NOW_MS - 7_200_000),
        ("PT2H", NOW_MS - 7_200_000),
        ("1969-12-31T23:59:59.999", -1),
    ],
)
def test_a_moment_is_a_number_a_date_or_a_while_ago(text: str, expected: int) -> None:
    assert parse_timestamp(text, NOW_MS) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("7d", 604_800_000),
        ("250ms", 250),
        ("1.5s", 1500),
        ("P1DT1S", 86_401_000),
    ],
)
def test_durations_are_read_in_both_spellings(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "soon", "1", "h", "1h 30m", "-1h", "1y", "2026-13-01", "9" * 40])
def test_an_invalid_timestamp_is_rejected_with_the_valid_formats(text: str) -> None:
    with pytest.raises(InvalidTimestamp):
        parse_duration(text)
    if text not in {"1"}:
        with pytest.raises(InvalidTimestamp, match="use 2026-01-31"):
            parse_timestamp(text, NOW_MS)


@given(st.datetimes(min_value=datetime.datetime(1, 1, 2), max_value=datetime.datetime(9999, 12, 30)))
def test_a_date_is_read_to_the_millisecond(moment: datetime.datetime) -> None:
    elapsed = moment - datetime.datetime(1970, 1, 1)
    assert parse_timestamp(moment.isoformat(), NOW_MS) == elapsed // datetime.timedelta(milliseconds=1)
