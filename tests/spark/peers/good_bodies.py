"""Bodies with valid logical types, over the common range of both readers."""

from typing import Any

from tests.unit.columnar.generation import Bodies, zigzag

DAY_FIRST, DAY_LAST = -354_285, 2_567_767
"""Days from 1970 to the years 1000 and 8999. Beyond that, Python conversions fail."""
DAY_MS = 86_400_000


class GoodBodies(Bodies):
    def fixed(self, schema: Any) -> bytes:
        if schema.get("logicalType") == "decimal":
            limit = 10 ** schema["precision"] - 1
            return self.rng.randint(-limit, limit).to_bytes(schema["size"], signed=True)
        return super().fixed(schema)

    def primitive(self, schema: Any) -> bytes:
        logical = "" if isinstance(schema, str) else schema.get("logicalType", "")
        if logical == "decimal":
            limit = 10 ** self.rng.randint(1, schema["precision"]) - 1
            number = self.rng.randint(-limit, limit)
            size = number.bit_length() // 8 + 1
            return zigzag(size) + number.to_bytes(size, signed=True)
        if logical == "uuid":
            text = f"{self.rng.getrandbits(32):08x}-0000-4abc-8000-{self.rng.getrandbits(48):012x}".encode()
            return zigzag(len(text)) + text
        if logical == "date":
            return zigzag(self.rng.randint(DAY_FIRST, DAY_LAST))
        if logical.startswith("time-"):
            return zigzag(self.rng.randrange(DAY_MS * (1000 if logical.endswith("micros") else 1)))
        if "timestamp" in logical:
            scale = DAY_MS * (1000 if logical.endswith("micros") else 1)
            return zigzag(self.rng.randint(DAY_FIRST * scale, DAY_LAST * scale))
        return super().primitive(schema)
