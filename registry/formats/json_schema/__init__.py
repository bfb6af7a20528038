"""JSON Schema: parse schemas and validate values.

`registry.compatibility.json_schema` compares two schemas.
"""

from headgate.registry.formats.json_schema.parsing import JsonSchema, parse
from headgate.registry.formats.json_schema.validation import Fault, Validator

__all__ = ["Fault", "JsonSchema", "Validator", "parse"]
