"""JSON Schema: text to a schema that can be validated with and compared.

Compatibility between two of them is `registry.compatibility.json_schema`.
"""

from headgate.registry.formats.json_schema.parsing import JsonSchema, parse
from headgate.registry.formats.json_schema.validation import Fault, Validator

__all__ = ["Fault", "JsonSchema", "Validator", "parse"]
