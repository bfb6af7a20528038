"""CSV as input of `headgate produce`: rows, types of each schema language, and messages for bad rows."""

import json

import pytest

from headgate.gateway.records.csv_input import CsvInput, converters
from headgate.gateway.records.input import InputRow, LineFormat
from headgate.gateway.records.json_lines import BadRecord
from headgate.gateway.records.record import NewRecord
from headgate.serdes import avro_schema, json_schema, protobuf_schema
from headgate.serdes.codecs import WholeSchema
from headgate.serdes.schemas import SchemaDefinition

ORDER = avro_schema(
    json.dumps(
        {
            "type": "record",
            "name": "Order",
            "fields": [
                {"name": "id", "type": "long"},
                {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
                {"name": "paid", "type": "boolean"},
                {"name": "weight", "type": ["null", "double"]},
                {"name": "note", "type": ["null", "string"]},
                {"name": "day", "type": {"type": "int", "logicalType": "date"}},
                {"name": "tags", "type": {"type": "array", "items": "string"}},
                {"name": "either", "type": ["int", "string"]},
            ],
        }
    )
)
HEADER = b"id,price,paid,weight,note,day,tags,either"


def rows(text: bytes, schema: SchemaDefinition = ORDER, key: str | None = None, separator: str = ",") -> list[InputRow]:
    csv = CsvInput(WholeSchema(schema, {}), LineFormat(), key, separator)
    found = [row for line in text.split(b"\n") for row in csv.feed(line)]
    return found + list(csv.end())


def document(row: InputRow) -> object:
    assert isinstance(row.record, NewRecord), row.record
    assert row.record.value is not None
    return json.loads(row.record.value)


def problem(row: InputRow) -> str:
    assert isinstance(row.record, BadRecord)
    return str(row.record)


def test_cells_have_the_types_of_the_fields() -> None:
    (row,) = rows(HEADER + b'\n12,9.99,TRUE,0.5,"say ""hi"", twice",2026-11-18,"[""a"",""b""]",seven\n')
    assert document(row) == {
        "id": 12,
        "price": "9.99",
        "paid": True,
        "weight": {"double": 0.5},
        "note": {"string": 'say "hi", twice'},
        "day": "2026-11-18",
        "tags": ["a", "b"],
        "either": {"string": "seven"},
    }


def test_an_empty_cell_is_null_only_where_null_is_allowed() -> None:
    (row,) = rows(HEADER + b"\n12,1,true,,,20000,[],7")
    found = document(row)
    assert isinstance(found, dict)
    assert (found["weight"], found["note"], found["day"], found["either"]) == (None, None, 20000, {"int": 7})
    (bad,) = rows(HEADER + b"\n,1,true,,,20000,[],7")
    assert problem(bad) == "column id: '' is not a whole number"


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (b"1.5,1,true,,,1,[],7", "column id: '1.5' is not a whole number"),
        (b"1,1,yes,,,1,[],7", "column paid: 'yes' is neither true nor false"),
        (b"1,1,true,heavy,,1,[],7", "column weight: 'heavy' is not a number"),
        (b"1,1,true,,,1,[a],7", "column tags: '[a]' is not JSON"),
        (b"1,1", "the row has 2 cells and the header 8 columns"),
        (b"\xff,1,true,,,1,[],7", "not CSV"),
        ("١,1,true,,,1,[],7".encode(), "column id: '١' is not a whole number"),
    ],
)
def test_a_bad_row_names_the_column_and_the_others_are_sent(cells: bytes, message: str) -> None:
    bad, good = rows(HEADER + b"\n" + cells + b"\n1,1,true,,,1,[],7")
    assert message in problem(bad)
    assert (bad.name, bad.text, good.name) == ("line 2", cells, "line 3")
    assert isinstance(good.record, NewRecord)


def test_a_line_break_inside_quotes_belongs_to_the_cell_and_counts_as_a_line() -> None:
    first, second = rows(b'id,note\r\n1,"two\nlines"\r\n\r\nx,\r\n')
    assert document(first) == {"id": 1, "note": {"string": "two\nlines"}}
    assert (first.name, second.name) == ("line 2", "line 5")


def test_an_unclosed_quote_is_one_bad_row() -> None:
    (row,) = rows(b'id,note\n1,"never closed\n2,b')
    assert "not CSV" in problem(row)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"id,colour", "the header has a column 'colour'; the fields of the schema are id, price"),
        (b"id,id", "the header has a column twice"),
        (b"id", "the header has no column 'customer'"),
    ],
)
def test_an_unusable_header_ends_the_input(header: bytes, message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        rows(header + b"\n1", key="customer" if b"no column" in message.encode() else None)


def test_a_key_column_need_not_be_a_field() -> None:
    (row,) = rows(b"\xef\xbb\xbfcustomer;id\nada;3", key="customer", separator=";")
    assert isinstance(row.record, NewRecord)
    assert row.record.key == b"ada"
    assert document(row) == {"id": 3}


def test_each_file_has_its_own_header() -> None:
    csv = CsvInput(WholeSchema(ORDER, {}), LineFormat(), None, ",")
    assert list(csv.feed(b"id")) == []
    assert [row.name for row in csv.feed(b"1")] == ["line 2"]
    assert list(csv.end()) == []
    assert list(csv.feed(b"note")) == []
    (row,) = csv.feed(b"x")
    assert document(row) == {"note": {"string": "x"}}


def test_json_schema_types() -> None:
    schema = json_schema(
        json.dumps(
            {
                "type": "object",
                "properties": {
                    "id": {"type": "integer"},
                    "name": {"type": ["null", "string"]},
                    "size": {"type": ["number", "string"]},
                    "tags": {"type": "array"},
                    "any": True,
                },
            }
        )
    )
    first, second = rows(b'id,name,size,tags,any\n1,,2.5,"[1]","{""a"":1}"\n2,ada,large,[],7', schema)
    assert document(first) == {"id": 1, "name": None, "size": 2.5, "tags": [1], "any": {"a": 1}}
    assert document(second) == {"id": 2, "name": "ada", "size": "large", "tags": [], "any": 7}


def test_protobuf_types() -> None:
    schema = protobuf_schema(
        'syntax = "proto3"; message Ping { string host = 1; int64 times = 2; bool up = 3; repeated int32 at = 4; }'
    )
    (row,) = rows(b'host,times,up,at\na,,true,"[1,2]"', schema)
    assert document(row) == {"host": "a", "times": None, "up": True, "at": [1, 2]}


def test_a_schema_without_fields_is_rejected() -> None:
    with pytest.raises(BadRecord, match="no fields"):
        converters(WholeSchema(avro_schema('"string"'), {}))
