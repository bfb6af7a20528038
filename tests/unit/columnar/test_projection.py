"""Projection: the remaining fields, the decoded rows, and unknown paths."""

import json
from typing import Any

import pytest
from pyarrow import lib as pa

from headgate.serdes.avro import Encoder, parse
from headgate.serdes.columnar import ColumnarDecoder, FixedSchemas, UnknownField, project

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": "string"},
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Item",
                    "fields": [{"name": "sku", "type": "string"}, {"name": "price", "type": "double"}],
                },
            },
        },
        {
            "name": "buyer",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Buyer",
                    "fields": [{"name": "name", "type": "string"}, {"name": "vip", "type": "boolean"}],
                },
            ],
        },
        {"name": "by_shop", "type": {"type": "map", "values": "Item"}},
    ],
}
VALUE = {
    "id": 7,
    "note": "n",
    "items": [{"sku": "a", "price": 1.5}, {"sku": "b", "price": 2.5}],
    "buyer": {"name": "x", "vip": True},
    "by_shop": {"s": {"sku": "c", "price": 3.5}},
}


def read(paths: list[str]) -> Any:
    schema = parse(json.dumps(ORDER))
    decoder = ColumnarDecoder(project(schema, paths), FixedSchemas({1: json.dumps(ORDER)}))
    batch = decoder.decode(pa.array([b"\0\0\0\0\1" + Encoder(schema).encode(VALUE)], pa.binary()))
    assert batch.reasons.to_pylist() == [0]
    return batch.values.to_pylist()[0]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["id"], {"id": 7}),
        (["buyer.vip", "id"], {"id": 7, "buyer": {"vip": True}}),
        (["items.price"], {"items": [{"price": 1.5}, {"price": 2.5}]}),
        (["by_shop.sku"], {"by_shop": [("s", {"sku": "c"})]}),
        (["buyer", "buyer.vip"], {"buyer": {"name": "x", "vip": True}}),
        ([], {}),
    ],
)
def test_only_the_selected_fields_are_columns(paths: list[str], expected: Any) -> None:
    assert read(paths) == expected


@pytest.mark.parametrize("path", ["nope", "id.x", "buyer.nope", "items.price.x", "", "id."])
def test_an_unknown_path_is_named(path: str) -> None:
    with pytest.raises(UnknownField):
        read([path])


def test_a_path_may_pass_through_a_recursive_record() -> None:
    node = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Node"]}],
    }
    pruned = project(parse(json.dumps(node)), ["next.next.v"])
    decoder = ColumnarDecoder(pruned, FixedSchemas({1: json.dumps(node)}))
    batch = decoder.decode(pa.array([b"\0\0\0\0\1" + b"\2\2\4\2\6\2\x08\0", b"\0\0\0\0\1\2\0"], pa.binary()))
    assert batch.values.to_pylist() == [{"next": {"next": {"v": 3}}}, {"next": None}]
