"""Mark the fields of a decoded record that are never null.

The decoder's Arrow types are nullable, because a bad row has no values. In the struct of `from_registry_avro` the value
itself is null then. For every nullable field below it Spark checks each row, which takes 5 to 10 % of the time. Avro
unions, and everything inside maps and unions of several types, stay nullable.
"""

import pyarrow.types as kinds
from pyarrow import lib as pa

from headgate.serdes.avro.schema import Array, Primitive, Record, Schema, Union
from headgate.serdes.columnar.layout import is_null

ITEM = "element"
"""PySpark's name for the items of a list. PySpark compares the names."""


def with_required(kind: pa.DataType, schema: Schema) -> pa.DataType:
    """The Arrow type with the required fields of the Avro schema marked as not nullable."""
    if isinstance(schema, Union):
        members = [branch for branch in schema.branches if not is_null(branch)]
        return with_required(kind, members[0]) if len(members) == 1 else kind
    if isinstance(schema, Record) and kinds.is_struct(kind):
        known = {field.name: field.schema for field in schema.fields}
        return pa.struct(
            [
                pa.field(field.name, with_required(field.type, known[field.name]), is_nullable(known[field.name]))
                for field in kind
            ]
        )
    if isinstance(schema, Array) and kinds.is_list(kind):
        item = with_required(kind.value_type, schema.items)
        return pa.list_(pa.field(ITEM, item, is_nullable(schema.items)))
    return kind


def is_nullable(schema: Schema) -> bool:
    return isinstance(schema, Union) or (isinstance(schema, Primitive) and schema.kind == "null")


def with_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same buffers with a type that differs only in nullability."""
    if array.type == kind:
        return array
    if kinds.is_list(kind):
        own, children = array.buffers()[:2], [with_type(array.values, kind.value_type)]
    else:
        if array.offset:
            # Copy: `field` applies the offset, and the validity buffer does not.
            array = pa.concat_arrays([array])
        own = array.buffers()[:1]
        children = [with_type(array.field(at), kind.field(at).type) for at in range(kind.num_fields)]
    # The fields of a null row are null despite their type, and never read. Other Arrow functions would reject them.
    return pa.Array.from_buffers(kind, len(array), own, array.null_count, array.offset, children=children)
