"""Random Avro schemas, values, and evolved readers, for property tests of decoders."""

import string
from datetime import UTC
from decimal import Context, Decimal
from typing import Any

from hypothesis import strategies as st

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

_LOGICAL: tuple[dict[str, Any], ...] = (
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "timestamp-nanos"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-nanos"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 10},
    {"type": "string", "logicalType": "uuid"},
)

# The types as which each type can be read. Integers are not read as floats: fastavro keeps too many digits.
_PROMOTIONS = {
    "int": ("long", "double"),
    "long": ("double",),
    "float": ("double",),
    "string": ("bytes",),
}


_KIN = ({"int", "long", "float", "double"}, {"bytes", "string"})


@st.composite
def schemas(
    draw: st.DrawFn, depth: int = 2, logical: bool = False, root: str | None = None, kin_in_unions: bool = True
) -> Any:
    """A schema as JSON. Names are `N1`, `N2`…, so that each named type is defined once and can be referenced.

    Without `kin_in_unions`, no branch of a union can be promoted to another.
    """
    names: list[str] = []
    counter = [0]

    def name() -> str:
        counter[0] += 1
        return f"N{counter[0]}"

    def leaf(in_union: bool) -> Any:
        kinds = ["primitive", "enum", "fixed"]
        if logical and not in_union:
            kinds += ["logical", "logical"]
        if names and not in_union:
            kinds.append("named")
        kind = draw(st.sampled_from(kinds))
        if kind == "primitive":
            return draw(st.sampled_from(PRIMITIVES))
        if kind == "logical":
            return dict(draw(st.sampled_from(_LOGICAL)))
        if kind == "named":
            return draw(st.sampled_from(names))
        made = name()
        if kind == "enum":
            symbols = draw(st.lists(st.sampled_from("ABCDEFGH"), min_size=1, max_size=5, unique=True))
            names.append(made)
            return {"type": "enum", "name": made, "symbols": symbols}
        names.append(made)
        return {"type": "fixed", "name": made, "size": draw(st.integers(1, 20))}

    def build(level: int, in_union: bool = False) -> Any:
        if level == 0:
            return leaf(in_union)
        kinds = ["leaf", "array", "map", "record", *([] if in_union else ["union", "nullable"])]
        kind = draw(st.sampled_from(kinds))
        if kind == "leaf":
            return leaf(in_union)
        if kind == "array":
            return {"type": "array", "items": build(level - 1)}
        if kind == "map":
            return {"type": "map", "values": build(level - 1)}
        if kind == "nullable":
            inner = build(level - 1, in_union=True)
            return ["null", inner] if inner != "null" else ["null", "int"]
        if kind == "union":
            branches: list[Any] = []
            seen: set[str] = set()
            for _ in range(draw(st.integers(1, 4))):
                branch = build(level - 1, in_union=True)
                label = branch if isinstance(branch, str) else branch.get("name", branch["type"])
                # {} could be a map or a record with defaults.
                either = not isinstance(branch, str) and branch["type"] in ("map", "record")
                kin = any(label in kinds and kinds & seen for kinds in _KIN) and not kin_in_unions
                if label not in seen and not (either and "either" in seen) and not kin:
                    seen |= {label, "either"} if either else {label}
                    branches.append(branch)
                else:
                    dropped = _definitions(branch, {})
                    names[:] = [known for known in names if known not in dropped]
            return branches
        return record(level)

    def record(level: int) -> Any:
        made = name()
        fields = []
        for letter in draw(st.lists(st.sampled_from(string.ascii_lowercase), min_size=1, max_size=5, unique=True)):
            if draw(st.integers(0, 9)) == 0:
                fields.append({"name": letter, "type": ["null", made], "default": None})
            else:
                fields.append({"name": letter, "type": build(level - 1)})
        names.append(made)
        return {"type": "record", "name": made, "fields": fields}

    return record(depth) if root == "record" else build(depth)


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Underlying values of the schema. Logical types have separate tests."""
    return _values(schema, _definitions(schema, {}), 3)


def _definitions(schema: Any, found: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema, list):
        for branch in schema:
            _definitions(branch, found)
    elif isinstance(schema, dict):
        if "name" in schema:
            found[schema["name"]] = schema
        for field in schema.get("fields", ()):
            _definitions(field["type"], found)
        for key in ("items", "values"):
            if key in schema:
                _definitions(schema[key], found)
    return found


_FLOATS = st.floats(width=32, allow_nan=False)
_PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "float": _FLOATS,
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=20),
    "string": st.text(max_size=12),
}

_EXACT = Context(prec=100)


def scaled(unscaled: int, scale: int) -> Decimal:
    return _EXACT.scaleb(Decimal(unscaled), -scale)


def _logical_values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    name = schema["logicalType"]
    if name == "date":
        return st.dates()
    if name == "time-millis":
        return st.times().map(lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000))
    if name == "time-micros":
        return st.times()
    if name == "uuid":
        return st.uuids()
    if name == "decimal":
        limit = 10 ** schema["precision"] - 1
        return st.integers(-limit, limit).map(lambda value: scaled(value, schema["scale"]))
    if name.endswith("nanos"):
        return _PLAIN["long"]
    zone = st.none() if name.startswith("local") else st.just(UTC)
    moments = st.datetimes(timezones=zone)
    if name.endswith("millis"):
        return moments.map(lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000))
    return moments


def _values(schema: Any, named: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:
    if isinstance(schema, list):
        if depth <= 0 and "null" in schema:
            return st.none()
        return st.one_of([_values(branch, named, depth) for branch in schema])
    if isinstance(schema, str):
        return _PLAIN[schema] if schema in _PLAIN else _values(named[schema], named, depth - 1)
    if "logicalType" in schema:
        return _logical_values(schema)
    match schema["type"]:
        case "record":
            return st.deferred(
                lambda: st.fixed_dictionaries(
                    {field["name"]: _values(field["type"], named, depth - 1) for field in schema["fields"]}
                )
            )
        case "enum":
            return st.sampled_from(schema["symbols"])
        case "fixed":
            return st.binary(min_size=schema["size"], max_size=schema["size"])
        case "array":
            return st.lists(_values(schema["items"], named, depth - 1), max_size=3)
        case "map":
            return st.dictionaries(st.text(max_size=5), _values(schema["values"], named, depth - 1), max_size=3)
    return _PLAIN[schema["type"]]


@st.composite
def evolved(draw: st.DrawFn, schema: Any) -> Any:
    """A reader that can read data of `schema`: fields reordered, removed, renamed by alias, added, promoted."""

    def walk(node: Any) -> Any:
        if isinstance(node, str):
            wider = _PROMOTIONS.get(node)
            return draw(st.sampled_from(wider)) if wider and draw(st.integers(0, 3)) == 0 else node
        if isinstance(node, list):
            # Branches are only reordered: fastavro uses the first match, Headgate the exact one.
            return draw(st.permutations(node))
        if node["type"] == "record":
            return {**node, "fields": fields(node["fields"])}
        if node["type"] == "enum" and draw(st.booleans()):
            kept = draw(st.lists(st.sampled_from(node["symbols"]), min_size=1, unique=True))
            return {**node, "symbols": kept, "default": kept[0]}
        return {key: walk(value) if key in ("items", "values") else value for key, value in node.items()}

    def fields(declared: list[Any]) -> list[Any]:
        out = []
        for field in draw(st.permutations(declared)):
            action = draw(st.sampled_from(["keep", "keep", "keep", "drop", "rename"]))
            if action == "drop" and not _defines_names(field["type"]):
                continue
            changed = {**field, "type": walk(field["type"]) if not _is_named_twice(field["type"]) else field["type"]}
            changed.pop("default", None)
            if action == "rename":
                changed |= {"name": f"{field['name']}_new", "aliases": [field["name"]]}
            out.append(changed)
        if draw(st.booleans()):
            added = draw(st.sampled_from([("int", 7), ("string", "x"), (["null", "long"], None)]))
            out.append({"name": "added", "type": added[0], "default": added[1]})
        return in_definition_order(out, declared)

    return walk(schema)


def in_definition_order(fields: list[Any], declared: list[Any]) -> list[Any]:
    """A named type is defined at its first use, so fields with named types keep the writer's order."""
    if not any(_mentions_names(field["type"]) for field in fields):
        return fields
    order = {field["name"]: index for index, field in enumerate(declared)}
    return sorted(fields, key=lambda field: order.get((field.get("aliases") or [field["name"]])[0], len(order)))


def _mentions_names(schema: Any) -> bool:
    if isinstance(schema, list):
        return any(_mentions_names(branch) for branch in schema)
    if isinstance(schema, str):
        return schema not in PRIMITIVES
    return "name" in schema or any(_mentions_names(schema[key]) for key in ("items", "values") if key in schema)


def _defines_names(schema: Any) -> bool:
    return bool(_definitions(schema, {}))


def _is_named_twice(schema: Any) -> bool:
    return isinstance(schema, str) and schema not in PRIMITIVES
