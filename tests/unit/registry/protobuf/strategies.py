"""Random Protobuf files that are valid and use most of the language."""

from hypothesis import strategies as st

SCALARS = ["double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64"]
SCALARS += ["sfixed32", "sfixed64", "bool", "string", "bytes"]
KEYS = [name for name in SCALARS if name not in ("double", "float", "bytes")]
DEPTH_MAX = 3


@st.composite
def files(draw: st.DrawFn) -> str:
    """The text of a file with unique names."""
    proto3 = draw(st.booleans())
    package = draw(st.sampled_from(["", "a", "shop.v1", "x.y.z"]))
    maker = _Maker(draw, proto3)
    lines = ['syntax = "proto3";' if proto3 else 'syntax = "proto2";']
    if package:
        lines.append(f"package {package};")
    lines.append('import "google/protobuf/timestamp.proto";')
    if draw(st.booleans()):
        lines.append(f'option java_package = "{draw(st.sampled_from(["p", "q.r"]))}";')
    maker.declare(draw(st.integers(1, 4)))
    lines += [maker.message(name, 0) for name in maker.messages]
    lines += [maker.enum(name) for name in maker.enums]
    if draw(st.booleans()):
        lines.append(f"service Service {{ rpc Call (stream {maker.messages[0]}) returns ({maker.messages[-1]}); }}")
    return "\n".join(lines)


class _Maker:
    def __init__(self, draw: st.DrawFn, proto3: bool) -> None:
        self._draw = draw
        self._proto3 = proto3
        self._count = 0
        self.messages: list[str] = []
        self.enums: list[str] = []

    def declare(self, count: int) -> None:
        self.messages = [f"Message{index}" for index in range(count)]
        self.enums = [f"Enum{index}" for index in range(self._draw(st.integers(0, 2)))]

    def enum(self, name: str) -> str:
        self._count += 1
        prefix = f"{name.upper()}_{self._count}"
        extra = self._draw(st.lists(st.integers(-5, 50).filter(bool), unique=True, max_size=4))
        constants = [f"{prefix}_{index} = {number};" for index, number in enumerate([0, *extra])]
        return f"enum {name} {{ {' '.join(constants)} }}"

    def message(self, name: str, depth: int) -> str:
        size = self._draw(st.integers(0, 5))
        numbers = self._draw(
            st.lists(st.integers(1, 300) | st.sampled_from([18999, 20000, 536870911]), unique=True, max_size=size)
        )
        body = [self._member(number, index) for index, number in enumerate(numbers)]
        if depth < DEPTH_MAX and self._draw(st.booleans()):
            self._count += 1
            body.insert(self._draw(st.integers(0, len(body))), self.message(f"Nested{self._count}", depth + 1))
        if self._draw(st.booleans()):
            self._count += 1
            body.append(self.enum(f"Inner{self._count}"))
        if self._draw(st.booleans()):
            body.append(self._draw(st.sampled_from(["reserved 400, 402 to 410;", 'reserved "gone";', "reserved 700;"])))
        return f"message {name} {{\n  " + "\n  ".join(body) + "\n}"

    def _member(self, number: int, index: int) -> str:
        name = f"{self._draw(st.sampled_from(['field', 'some_field', '_x', 'camelCase', 'UPPER_case']))}_{index}"
        match self._draw(st.integers(0, 5)):
            case 0:
                key = self._draw(st.sampled_from(KEYS))
                return f"map<{key}, {self._type()}> {name} = {number};"
            case 1:
                return f"oneof choice_{index} {{ {self._type()} {name} = {number}; }}"
            case 2:
                return f"repeated {self._type()} {name} = {number}{self._options()};"
            case 3:
                return f"optional {self._type()} {name} = {number}{self._options()};"
            case _:
                label = "" if self._proto3 else self._draw(st.sampled_from(["required ", "optional "]))
                return f"{label}{self._type()} {name} = {number}{self._options()};"

    def _type(self) -> str:
        named = [*self.messages, *self.enums, "google.protobuf.Timestamp"]
        return self._draw(st.sampled_from(SCALARS) | st.sampled_from(named))

    def _options(self) -> str:
        return self._draw(
            st.sampled_from(["", "", " [deprecated = true]", " [deprecated = false, debug_redact = true]"])
        )
