"""Derive an Avro schema from the columns of a DataFrame, for a topic sink whose subject has no schema yet."""

import json
import re
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_PLAIN: dict[str, Any] = {
    "boolean": "boolean",
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DEPTH_MAX = 50


def avro_text(schema: "StructType", name: str) -> str:
    """Every field is nullable with the default null, so that later versions can remove it. Raises `PipelineError`."""
    return json.dumps(_record(schema, re.sub(r"[^A-Za-z0-9_]", "_", name).lstrip("0123456789") or "Row", 0))


def _record(schema: "StructType", name: str, depth: int) -> dict[str, Any]:
    fields = []
    for field in schema.fields:
        if _NAME.fullmatch(field.name) is None:
            raise PipelineError(
                f"column {field.name} is not a valid Avro field name", advice="rename it in a transform, or set schema"
            )
        kind = _type(field.dataType, f"{name}_{field.name}", depth)
        fields.append({"name": field.name, "type": ["null", kind], "default": None})
    return {"type": "record", "name": name, "fields": fields}


def _type(kind: "DataType", name: str, depth: int) -> Any:
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StringType, StructType

    if depth > DEPTH_MAX:
        raise PipelineError(f"column {name} is nested deeper than {DEPTH_MAX} levels")
    if isinstance(kind, StructType):
        return _record(kind, name, depth + 1)
    if isinstance(kind, ArrayType):
        return {"type": "array", "items": ["null", _type(kind.elementType, name, depth + 1)]}
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return {"type": "map", "values": ["null", _type(kind.valueType, name, depth + 1)]}
    if isinstance(kind, DecimalType):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    found = _PLAIN.get(kind.typeName())
    if found is None:
        raise PipelineError(
            f"column {name.partition('_')[2] or name} is {kind.simpleString()}, which Avro does not support",
            advice="cast it in a transform, or set schema",
        )
    return found
