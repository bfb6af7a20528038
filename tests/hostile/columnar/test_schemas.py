"""Schemas that exhaust a decoder: long chains of records and many columns, as reader's and as writer's schema."""

import json
from typing import Any

import pytest
from pyarrow import lib as pa

from headgate.serdes.avro import Decoder, parse
from headgate.serdes.columnar import ColumnarDecoder, FixedSchemas, SchemaTooLarge
from headgate.serdes.outcome import Poison, Reason

FIRST = {"name": "f0", "type": {"type": "record", "name": "C0", "fields": [{"name": "x", "type": "int"}]}}
NARROW = {"type": "record", "name": "R", "fields": [FIRST]}


def chain(length: int) -> dict[str, Any]:
    """Return a schema in which each record refers to the previous one.

    The JSON text is flat, and the depth of the values is the length of the chain.
    """
    links = [
        {
            "name": f"f{link}",
            "type": {"type": "record", "name": f"C{link}", "fields": [{"name": "x", "type": ["null", f"C{link - 1}"]}]},
        }
        for link in range(1, length)
    ]
    return {"type": "record", "name": "R", "fields": [FIRST, *links]}


def verdicts(writer: Any, reader: Any, bodies: list[bytes]) -> list[tuple[int, int]]:
    decoder = ColumnarDecoder(parse(json.dumps(reader)), FixedSchemas({1: json.dumps(writer)}))
    ours = decoder.decode(pa.array([b"\0\0\0\0\1" + body for body in bodies], pa.binary())).reasons.to_pylist()
    row_wise = Decoder(parse(json.dumps(writer)), parse(json.dumps(reader)))
    outcomes = [row_wise.decode(body) for body in bodies]
    theirs = [int(outcome.reason) if isinstance(outcome, Poison) else 0 for outcome in outcomes]
    return list(zip(ours, theirs, strict=True))


@pytest.mark.parametrize("reader", ["whole", "narrow"])
def test_a_chain_deeper_than_payloads_may_be_is_read_as_far_as_they_may(reader: str) -> None:
    length = 110
    shallow = b"\2" + b"\0" * (length - 1)
    deep = b"\2" + b"\0" * (length - 2) + b"\2" * (length - 1) + b"\2"
    writer = chain(length)
    expected = [(0, 0), (Reason.TOO_DEEP, Reason.TOO_DEEP)]
    assert verdicts(writer, writer if reader == "whole" else NARROW, [shallow, deep]) == expected


def test_a_very_long_chain_is_refused_as_a_reader_and_stepped_over_as_a_writer() -> None:
    writer = chain(2500)
    with pytest.raises(SchemaTooLarge):
        ColumnarDecoder(parse(json.dumps(writer)), FixedSchemas({}))
    deep = b"\2" + b"\0" * 2498 + b"\2" * 2499 + b"\2"
    assert verdicts(writer, NARROW, [b"\2" + b"\0" * 2499, deep]) == [(0, 0), (Reason.TOO_DEEP, Reason.TOO_DEEP)]


def test_a_thousand_columns_are_no_trouble() -> None:
    wide = {"type": "record", "name": "W", "fields": [{"name": f"f{n}", "type": ["null", "long"]} for n in range(1000)]}
    assert verdicts(wide, wide, [b"\0" * 1000, b"\2\2" * 1000, b"\0" * 999]) == [(0, 0), (0, 0), (5, 5)]
