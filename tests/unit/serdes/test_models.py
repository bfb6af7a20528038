"""Dataclasses and pydantic models as Avro schemas and values."""

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, Optional
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from headgate.registry.formats import avro
from headgate.serdes import AvroType, EncodeError, ModelError, decimal, model_of
from headgate.serdes.avro import Schema, parse
from headgate.serdes.avro.codec import AvroReader, AvroWriter
from headgate.serdes.codec import ReadOptions, WriteOptions
from headgate.serdes.framing import Frame


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: float = 0.5


@dataclass
class Line:
    points: list[Point]


@dataclass
class Everything:
    flag: bool
    text: str
    data: bytes
    at: datetime
    day: date
    clock: time
    id: UUID
    price: Annotated[Decimal, AvroType(decimal(9, 2))]
    small: Annotated[int, AvroType("int")]
    colour: Colour
    size: Literal["s", "m"]
    points: list[Point]
    by_name: dict[str, Point]
    shape: Point | Line | None
    other: Colour | None = None
    note: str | None = None
    tags: list[str] = field(default_factory=list)
    level: int | None = 3
    next: Optional["Everything"] = None


FULL = Everything(
    True,
    "ü",
    b"\x00\xff",
    datetime(2026, 11, 18, 10, 15, 30, 123456, UTC),
    date(1969, 12, 31),
    time(23, 59, 59, 999999),
    UUID(int=7),
    Decimal("-12.34"),
    -1,
    Colour.BLUE,
    "m",
    [Point(1), Point(2, -0.0)],
    {"a": Point(3)},
    Line([Point(4)]),
    Colour.RED,
    "note",
    ["t"],
    None,
    None,
)


def parsed(kind: type) -> Schema:
    return parse(model_of(kind).schema.text)


def round_trip(instance: Any) -> Any:
    model, schema = model_of(type(instance)), parsed(type(instance))
    body = AvroWriter(schema, WriteOptions()).write(model.to_value(instance))
    frame = Frame(1, None, body.content, b"")
    return model.from_value(AvroReader(schema, schema, ReadOptions(tag_unions=True)).read(frame))


def field_of(kind: type, name: str) -> dict[str, Any]:
    fields: list[dict[str, Any]] = json.loads(model_of(kind).schema.text)["fields"]
    return next(one for one in fields if one["name"] == name)


def test_a_dataclass_with_every_type_survives_a_round_trip() -> None:
    assert round_trip(FULL) == FULL


def test_a_record_that_contains_itself_survives_a_round_trip() -> None:
    nested = Everything(**{**FULL.__dict__, "next": FULL, "shape": Point(5), "level": 4})
    found = round_trip(nested)
    assert found == nested
    assert type(found.next.shape) is Line


def test_the_registry_accepts_the_schema_and_each_name_is_defined_once() -> None:
    text = model_of(Everything).schema.text
    avro.parse(text, {}, strict=True)
    assert text.count('"name": "Point"') == 1


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("note", {"type": ["null", "string"], "default": None}),
        ("level", {"type": ["long", "null"], "default": 3}),
        ("tags", {"type": {"type": "array", "items": "string"}, "default": []}),
        ("small", {"type": "int"}),
        ("price", {"type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}),
        ("next", {"type": ["null", "Everything"], "default": None}),
    ],
)
def test_types_and_defaults_of_fields(name: str, wanted: dict[str, Any]) -> None:
    assert field_of(Everything, name) == {"name": name, **wanted}


def test_a_default_of_a_number_is_part_of_the_schema() -> None:
    assert field_of(Point, "y") == {"name": "y", "type": "double", "default": 0.5}


class Order(BaseModel):
    id: int = Field(gt=0)
    price: Decimal = Field(max_digits=9, decimal_places=2)
    line: Point | None = None
    colour: Colour = Colour.RED
    renamed: str = Field("x", alias="reNamed")


def test_a_pydantic_model_survives_a_round_trip() -> None:
    order = Order(id=1, price=Decimal("9.99"), line=Point(1), reNamed="y")
    assert round_trip(order) == order
    assert field_of(Order, "price")["type"] == decimal(9, 2)
    assert field_of(Order, "colour")["default"] == "red"


def test_a_pydantic_model_validates_decoded_values() -> None:
    value = model_of(Order).to_value(Order.model_construct(id=-1, price=Decimal(1), renamed="x"))
    with pytest.raises(ValueError, match="greater than 0"):
        model_of(Order).from_value(value)


def test_values_of_another_class_are_rejected() -> None:
    with pytest.raises(EncodeError, match="dict is not Point"):
        model_of(Point).to_value({"x": 1})
    wrong = Everything(**{**FULL.__dict__, "shape": "circle"})
    with pytest.raises(EncodeError, match="str is no branch of the union"):
        model_of(Everything).to_value(wrong)


class Number(Enum):
    ONE = 1


class Spaced(Enum):
    TWO_WORDS = "two words"


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        (Decimal, "Broken.value: a Decimal needs its size"),
        (complex, "Broken.value: .*complex.* has no Avro type"),
        (dict[int, str], "has no Avro type"),
        (list, "has no Avro type"),
        (Number, "must be names of Avro"),
        (Spaced, "must be names of Avro"),
        (list[int] | list[str], "two branches of the union have the same Avro type"),
        (list[complex], r"Broken.value\[\]"),
    ],
)
def test_a_type_without_an_avro_type_names_the_field(hint: Any, message: str) -> None:
    class Broken:
        value: Any

    Broken.__annotations__["value"] = hint
    with pytest.raises(ModelError, match=message):
        model_of(dataclass(Broken))


def test_two_classes_with_one_name_are_rejected() -> None:
    @dataclass
    class Inner:
        x: int

    first = Inner

    @dataclass
    class Outer:
        a: Any
        b: Any

    @dataclass
    class Inner:  # type: ignore[no-redef]
        y: int

    Outer.__annotations__.update(a=first, b=Inner)
    with pytest.raises(ModelError, match="two classes have the name Inner"):
        model_of(Outer)


def test_a_plain_class_is_not_a_model() -> None:
    with pytest.raises(ModelError, match="neither a dataclass nor a pydantic model"):
        model_of(int)
