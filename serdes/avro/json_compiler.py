"""The parts that both directions of Avro's JSON encoding share: the compiler, arrays and maps."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from headgate.serdes.avro.scalar_encoder import deeper, wrong
from headgate.serdes.avro.schema import Array, Enum, Field, Fixed, Map, Primitive, Record, Schema, Union
from headgate.serdes.errors import EncodeError

Convert: TypeAlias = Callable[[Any, int], Any]
"""Converts a value at a depth. Raises EncodeError."""


class JsonCompiler(ABC):
    """Compiles records from a work list, because chains of records can exceed the stack."""

    def __init__(self) -> None:
        self._records: dict[Record, Convert] = {}
        self._work: list[Callable[[], None]] = []

    def compile(self, schema: Schema) -> Convert:
        convert = self._converter(schema)
        while self._work:
            self._work.pop()()
        return convert

    @abstractmethod
    def _scalar(self, schema: Primitive | Fixed | Enum) -> Convert: ...

    @abstractmethod
    def _union(self, schema: Union, branches: list[Convert]) -> Convert: ...

    @abstractmethod
    def _fields(self, name: str, steps: list[tuple[Field, Convert]]) -> Convert:
        """The converter of a record. `steps` is filled later."""

    def _converter(self, schema: Schema) -> Convert:
        if isinstance(schema, Union):
            return self._union(schema, [self._converter(branch) for branch in schema.branches])
        if isinstance(schema, Array):
            return _array(self._converter(schema.items))
        if isinstance(schema, Map):
            return _map(self._converter(schema.values))
        if isinstance(schema, Record):
            return self._record(schema)
        return self._scalar(schema)

    def _record(self, schema: Record) -> Convert:
        if schema in self._records:
            return self._records[schema]
        steps: list[tuple[Field, Convert]] = []
        convert = self._records[schema] = self._fields(schema.name, steps)
        self._work.append(lambda: steps.extend((field, self._converter(field.schema)) for field in schema.fields))
        return convert


def _array(item: Convert) -> Convert:
    def convert(value: Any, depth: int) -> Any:
        if not isinstance(value, (list, tuple)):
            raise wrong(value, "array")
        depth = deeper(depth)
        out: list[Any] = []
        try:
            for entry in value:
                out.append(item(entry, depth))  # noqa: PERF401  # its length is the place of a fault
        except EncodeError as error:
            error.path.append(f"[{len(out)}]")
            raise
        return out

    return convert


def _map(item: Convert) -> Convert:
    def convert(value: Any, depth: int) -> Any:
        if not isinstance(value, Mapping):
            raise wrong(value, "map")
        depth = deeper(depth)
        key = None
        out: dict[str, Any] = {}
        try:
            for key, entry in value.items():
                if not isinstance(key, str):
                    raise wrong(key, "string")
                out[key] = item(entry, depth)
        except EncodeError as error:
            error.path.append(f"[{key!r:.60}]")
            raise
        return out

    return convert
