import pytest

from headgate.proxy.errors import BadRequest
from headgate.proxy.reading.filters import compile_filter

ROW = {
    "partition_id": 3,
    "offset": 17,
    "timestamp": "2026-01-31T12:00:00.000Z",
    "headers": [{"name": "trace", "value": "YWJj"}, {"name": "none", "value": None}],
    "key": {"type": "STRING", "data": "Order-77"},
    "value": {
        "type": "AVRO",
        "schema_id": 12,
        "data": {
            "user": {"com.example.User": {"name": "Ärger", "age": {"int": 41}}},
            "items": [{"price": 1.5}, {"price": 20}],
            "ok": True,
            "gone": None,
            "at": "2026-01-31T10:00:00+01:00",
        },
    },
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("order-77", True),
        ("ärger", True),
        ("abc", True),
        ("user", True),
        ("nothing", False),
        ("key:order", True),
        ("key=Order-77", True),
        ("key=order-77", False),
        ("key!=x", True),
        ("value.user.age>=41", True),
        ("value.user.age>41", False),
        ("value.user.age:41", True),
        ("value.user.age:4", False),
        ("value.user.name:ärg", True),
        ("value.items.1.price>=20", True),
        ("value.items.0.price=1.5", True),
        ("value.items.2.price>0", False),
        ("value.ok=true", True),
        ("value.gone=null", True),
        ("value.gone>1", False),
        ("value.nowhere!=1", True),
        ("value.at<2026-01-31T09:30:00Z", True),
        ("value:20", True),
        ("header.trace:b", True),
        ("header.trace=abc", True),
        ("header.other:b", False),
        ("partition:3 offset>=17 schema:12", True),
        ("schema=13", False),
        ("timestamp<2026-02-01", True),
        ("timestamp>=2026-02-01", False),
        ("-abc", False),
        ("-value.user.age<10", True),
        ('"Order 77"', False),
        ('key:"order-77"', True),
        ("value.user.age>=abc", False),
    ],
)
def test_a_filter_matches_or_not(text: str, expected: bool) -> None:
    predicate = compile_filter([text])
    assert predicate is not None
    assert predicate(ROW) is expected


def test_no_tokens_give_no_filter() -> None:
    assert compile_filter([]) is None
    assert compile_filter(["  "]) is None


def test_all_filters_must_match() -> None:
    predicate = compile_filter(["abc", "key:nobody"])
    assert predicate is not None
    assert not predicate(ROW)


@pytest.mark.parametrize("text", ["x" * 1001, "a " * 21, "header:x", "value." + "a." * 30 + "b>1"])
def test_filters_over_the_limits_are_rejected(text: str) -> None:
    with pytest.raises(BadRequest):
        compile_filter([text])


def test_a_row_without_key_and_value_matches_no_text() -> None:
    predicate = compile_filter(["x"])
    assert predicate is not None
    assert not predicate({**ROW, "headers": [], "key": None, "value": None})


def test_deep_values_are_searched_without_recursion() -> None:
    deep: object = "needle"
    for _ in range(100_000):
        deep = [deep]
    predicate = compile_filter(["needle"])
    assert predicate is not None
    assert predicate({**ROW, "headers": [], "value": {"type": "JSON", "data": deep}})
