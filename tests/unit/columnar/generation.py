"""Random Avro schemas, readers that may not match, and bodies written byte by byte.

This covers more than normal producers: all logical types, recursion, items of zero bytes, blocks with byte sizes,
redundant varint bytes, readers that do not match. The row-wise decoder determines the expected result.
"""

import struct
from random import Random
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL: tuple[dict[str, Any], ...] = (
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    *(
        {"type": "long", "logicalType": f"{kind}timestamp-{unit}"}
        for kind in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    ),
    {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 25, "scale": 3},
    {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 60},
    {"type": "bytes", "logicalType": "decimal", "precision": 90, "scale": 5},
    {"type": "string", "logicalType": "uuid"},
)
FIXED: tuple[dict[str, Any], ...] = (
    {"size": 0},
    {"size": 1},
    {"size": 5},
    {"size": 8},
    {"size": 19},
    {"size": 12, "logicalType": "duration"},
    {"size": 16, "logicalType": "uuid"},
    {"size": 4, "logicalType": "decimal", "precision": 6, "scale": 2},
    {"size": 17, "logicalType": "decimal", "precision": 38, "scale": 0},
    {"size": 30, "logicalType": "decimal", "precision": 70, "scale": 7},
    {"size": 45, "logicalType": "decimal", "precision": 100, "scale": 7},
)
SYMBOLS = ("A", "B", "Cc", "Ddddddddddd", "E")
PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


class Schemas:
    """Creates one schema. All named types have unique names."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"N{self.count}"

    def leaf(self) -> Any:
        kind = self.rng.random()
        if kind < 0.55:
            return self.rng.choice(PRIMITIVES)
        if kind < 0.75:
            return dict(self.rng.choice(LOGICAL))
        if kind < 0.87:
            symbols = self.rng.sample(SYMBOLS, self.rng.randint(1, len(SYMBOLS)))
            return {"type": "enum", "name": self.name(), "symbols": symbols}
        return {"type": "fixed", "name": self.name(), **self.rng.choice(FIXED)}

    def any(self, depth: int, enclosing: tuple[str, ...] = ()) -> Any:
        kind = self.rng.random()
        if depth <= 0 or kind < 0.3:
            return self.leaf()
        if kind < 0.45:
            return {"type": "array", "items": self.any(depth - 1, enclosing)}
        if kind < 0.55:
            return {"type": "map", "values": self.any(depth - 1, enclosing)}
        if kind < 0.75:
            return self.union(depth, enclosing)
        return self.record(depth, enclosing)

    def union(self, depth: int, enclosing: tuple[str, ...]) -> Any:
        branches: dict[str, Any] = {"null": "null"} if self.rng.random() < 0.7 else {}
        for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
            branch = self.any(depth - 1, enclosing)
            if not isinstance(branch, list):
                branches.setdefault(label(branch), branch)
        if enclosing and self.rng.random() < 0.3:
            branches.setdefault(enclosing[-1], self.rng.choice(enclosing))
        found = list({label(branch): branch for branch in branches.values()}.values())
        self.rng.shuffle(found)
        return found

    def record(self, depth: int, enclosing: tuple[str, ...] = ()) -> Any:
        name = self.name()
        inner = (*enclosing, name)
        fields = []
        for index in range(self.rng.choice((0, 1, 2, 3, 4, 6))):
            if self.rng.random() < 0.08:
                schema: Any = self.rng.choice((["null", name], {"type": "array", "items": name}))
            else:
                schema = self.any(depth - 1, inner)
            fields.append({"name": f"f{index}", "type": schema})
        return {"type": "record", "name": name, "fields": fields}


def label(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    return str(schema.get("name", schema["type"]))


def definitions(schema: Any, found: dict[str, Any] | None = None) -> dict[str, Any]:
    found = {} if found is None else found
    if isinstance(schema, list):
        for branch in schema:
            definitions(branch, found)
    elif isinstance(schema, dict):
        if "name" in schema:
            found[schema["name"]] = schema
        for field in schema.get("fields", ()):
            definitions(field["type"], found)
        for key in ("items", "values"):
            if key in schema:
                definitions(schema[key], found)
    return found


class Readers:
    """Creates a reader from a writer schema: usually a matching one, sometimes not."""

    def __init__(self, rng: Random, rate: float) -> None:
        self.rng = rng
        self.rate = rate
        self.made = Schemas(rng)
        self.made.count = 1000
        self.seen: set[str] = set()

    def changes(self, weight: float = 1.0) -> bool:
        return self.rng.random() < self.rate * weight

    def evolve(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return self.union(schema)
        if self.changes(0.3):
            return list({label(one): one for one in ("null", self.evolve_plain(schema))}.values())
        return self.evolve_plain(schema)

    def evolve_plain(self, schema: Any) -> Any:
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                wider = PROMOTIONS.get(schema)
                return self.rng.choice(wider) if wider and self.changes() else schema
            return schema
        kind = schema["type"]
        if kind == "record":
            self.seen.add(schema["name"])
            return {**schema, "fields": self.fields(schema["fields"])}
        if kind == "enum" and self.changes():
            kept = self.rng.sample(schema["symbols"], self.rng.randint(1, len(schema["symbols"])))
            return {**schema, "symbols": kept, **({"default": kept[0]} if self.rng.random() < 0.7 else {})}
        if kind == "array":
            return {**schema, "items": self.evolve(schema["items"])}
        if kind == "map":
            return {**schema, "values": self.evolve(schema["values"])}
        if "logicalType" in schema and kind != "fixed" and self.changes(0.5):
            return kind if self.rng.random() < 0.7 else dict(self.rng.choice(LOGICAL))
        return schema

    def union(self, branches: list[Any]) -> Any:
        out = [self.evolve_plain(branch) for branch in branches]
        if self.changes():
            self.rng.shuffle(out)
        if len(out) > 1 and self.changes(0.4) and not any(self.defines(branch) for branch in out[1:]):
            out.pop()
        if self.changes(0.5):
            out.append(self.rng.choice(PRIMITIVES))
        out = list({label(branch): branch for branch in out}.values())
        return out[0] if len(out) == 1 and self.changes() else out

    def defines(self, schema: Any) -> bool:
        return bool(definitions(schema))

    def fields(self, fields: list[Any]) -> list[Any]:
        out = []
        for field in fields:
            drop = self.changes()
            changed = {**field, "type": self.evolve(field["type"])}
            if drop and not self.defines(changed["type"]):
                continue
            if self.changes(0.5):
                changed |= {"name": f"{field['name']}_new", "aliases": [field["name"]]}
            out.append(changed)
        while self.changes():
            schema = self.made.any(2)
            default = Defaults(self.rng, schema).value(schema)
            out.append({"name": f"added{self.made.count}_{len(out)}", "type": schema, "default": default})
        return out


class Defaults:
    def __init__(self, rng: Random, schema: Any) -> None:
        self.rng = rng
        self.named = definitions(schema)

    def latin(self, size: int) -> str:
        return "".join(chr(self.rng.randint(0, 255)) for _ in range(size))

    def value(self, schema: Any, depth: int = 3) -> Any:
        if isinstance(schema, list):
            if not schema:
                return None
            return self.value(self.rng.choice(schema) if depth > 0 else schema[0], depth - 1)
        if isinstance(schema, str) and schema in self.named:
            return self.value(self.named[schema], depth - 1)
        if isinstance(schema, str) or schema["type"] in PRIMITIVES:
            return self.primitive(schema)
        match schema["type"]:
            case "record":
                return {field["name"]: self.value(field["type"], depth - 1) for field in schema["fields"]}
            case "array":
                return [
                    self.value(schema["items"], depth - 1) for _ in range(self.rng.randint(0, 2 if depth > 0 else 0))
                ]
            case "map":
                count = self.rng.randint(0, 2 if depth > 0 else 0)
                return {f"k{index}": self.value(schema["values"], depth - 1) for index in range(count)}
            case "enum":
                return self.rng.choice(schema["symbols"])
        return "\0" + self.latin(schema["size"] - 1) if schema["size"] else ""

    def primitive(self, schema: Any) -> Any:
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = "" if isinstance(schema, str) else schema.get("logicalType", "")
        if logical == "uuid":
            return f"00000000-1111-2222-3333-{self.rng.getrandbits(48):012x}"
        if logical == "decimal":
            return self.latin(1)
        return {
            "null": None,
            "boolean": self.rng.random() < 0.5,
            "int": self.rng.randint(0, 10**6),
            "long": self.rng.randint(0, 10**9),
            "float": self.rng.uniform(-1e6, 1e6),
            "double": self.rng.uniform(-1e6, 1e6),
            "bytes": self.latin(self.rng.randint(0, 4)),
            "string": "é" * self.rng.randint(0, 3),
        }[kind]


def zigzag(value: int) -> bytes:
    return unsigned(((value << 1) ^ (value >> 63)) & (2**64 - 1))


def unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


TEXTS = ("", "a", "abcdefg", "abcdefgh", "abcdefghi", "é", "naïve café", "\U0001f600", "x" * 40, "日本語テキスト")


class Bodies:
    """Writes a body of a schema, byte by byte."""

    def __init__(self, rng: Random, schema: Any) -> None:
        self.rng = rng
        self.schema = schema
        self.named = definitions(schema)
        self.keys = 0

    def body(self) -> bytes:
        return self.value(self.schema, 4)

    def value(self, schema: Any, depth: int) -> bytes:
        if isinstance(schema, list):
            return self.union(schema, depth)
        if isinstance(schema, str) and schema in self.named:
            schema = self.named[schema]
        if isinstance(schema, str) or schema["type"] in PRIMITIVES:
            return self.primitive(schema)
        match schema["type"]:
            case "record":
                return b"".join(self.value(field["type"], depth - 1) for field in schema["fields"])
            case "array":
                return self.blocks(lambda: self.value(schema["items"], depth - 1), depth)
            case "map":
                return self.blocks(lambda: self.key() + self.value(schema["values"], depth - 1), depth)
            case "enum":
                return zigzag(self.rng.randrange(len(schema["symbols"])))
        return self.fixed(schema)

    def fixed(self, schema: Any) -> bytes:
        if schema.get("logicalType") == "decimal" and self.rng.random() < 0.9:
            limit = 10 ** schema["precision"] - 1
            return self.rng.randint(-limit, limit).to_bytes(schema["size"], signed=True)
        return self.rng.randbytes(schema["size"])

    def union(self, branches: list[Any], depth: int) -> bytes:
        if not branches:
            return zigzag(0)
        index = self.rng.randrange(len(branches))
        if depth <= 0:
            # The shortest end of a recursive record.
            index = min(range(len(branches)), key=lambda place: self.cost(branches[place]))
        return zigzag(index) + self.value(branches[index], depth - 1)

    def cost(self, schema: Any) -> int:
        if isinstance(schema, str):
            return 3 if schema in self.named and self.named[schema]["type"] == "record" else int(schema != "null")
        return {"array": 1, "map": 1, "record": 2}.get(schema["type"], 1)

    def blocks(self, item: Any, depth: int) -> bytes:
        out = bytearray()
        if depth > -3:
            for _ in range(self.rng.choice((0, 1, 1, 1, 2)) if depth > 0 else 0):
                count = self.rng.choice((1, 1, 2, 3, 3, 9))
                items = b"".join(item() for _ in range(count))
                sized = self.rng.random() < 0.25
                out += zigzag(-count) + zigzag(len(items)) + items if sized else zigzag(count) + items
        return bytes(out) + b"\0"

    def text(self) -> bytes:
        raw = self.rng.choice(TEXTS).encode()
        return zigzag(len(raw)) + raw

    def key(self) -> bytes:
        """Unique keys: in Python the last value wins and hides the earlier one."""
        self.keys += 1
        raw = f"{self.rng.choice(TEXTS)}{self.keys}".encode()
        return zigzag(len(raw)) + raw

    def number(self, bits: int) -> int:
        return self.rng.choice(
            (
                self.rng.randint(-3, 200),
                self.rng.randint(0, 10**6),
                self.rng.randint(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
                -(1 << (bits - 1)),
                (1 << (bits - 1)) - 1,
            )
        )

    def primitive(self, schema: Any) -> bytes:
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = {} if isinstance(schema, str) else schema
        match kind:
            case "null":
                return b""
            case "boolean":
                return self.rng.choice((b"\0", b"\1"))
            case "int" | "long":
                if logical and self.rng.random() < 0.9:
                    return zigzag(self.rng.randint(0, 86_399_999))
                return zigzag(self.number(32 if kind == "int" else 64))
            case "float":
                return self.rng.choice((struct.pack("<f", self.rng.uniform(-9, 9)), self.rng.randbytes(4)))
            case "double":
                return self.rng.choice((struct.pack("<d", self.rng.uniform(-9, 9)), self.rng.randbytes(8)))
            case "string" if logical and self.rng.random() < 0.9:
                raw = (f"{self.rng.getrandbits(32):08x}-0000-4aBc-8000-{self.rng.getrandbits(48):012X}").encode()
                return zigzag(len(raw)) + raw
            case "bytes" if logical and self.rng.random() < 0.9:
                limit = 10 ** self.rng.randint(1, logical["precision"]) - 1
                number = self.rng.randint(-limit, limit)
                size = number.bit_length() // 8 + 1 + self.rng.choice((0, 0, 0, 1, 9))
                return zigzag(size) + number.to_bytes(size, signed=True)
            case "bytes":
                raw = self.rng.randbytes(self.rng.choice((0, 1, 3, 8, 17)))
                return zigzag(len(raw)) + raw
        return self.text()
