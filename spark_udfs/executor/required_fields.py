"""Which fields of a decoded record are never null, told to Spark.

The decoder's Arrow types leave every field nullable, since a bad row has no values at all. In the struct of
`from_registry_avro` that is said once, by the value itself; of a field below it Spark asks "is it null?" for every row
unless the type says that it never is, and that takes a twentieth to a tenth of the column's whole time. A field
that Avro gives a union is left nullable, and so is whatever lies in a map or in a union of several types.
"""

import pyarrow.types as kinds
from pyarrow import lib as pa

from headgate.serdes.avro.schema import Array, Primitive, Record, Schema, Union
from headgate.serdes.columnar.layout import is_null

ITEM = "element"
"""What PySpark calls the items of a list, in the types that it compares with."""


def with_required(kind: pa.DataType, schema: Schema) -> pa.DataType:
    """The Arrow type of values of a schema, as Spark takes it, with the fields that are always there marked as such."""
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


def retyped(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same buffers under a type that differs in nothing but in what may be null."""
    if array.type == kind:
        return array
    if kinds.is_list(kind):
        own, children = array.buffers()[:2], [retyped(array.values, kind.value_type)]
    else:
        if array.offset:
            # Its fields would be given from there on, its own validity from the beginning.
            array = pa.concat_arrays([array])
        own = array.buffers()[:1]
        children = [retyped(array.field(at), kind.field(at).type) for at in range(kind.num_fields)]
    # The fields of a null row are null in spite of their type; nobody looks at them. Arrow's other ways would refuse.
    return pa.Array.from_buffers(kind, len(array), own, array.null_count, array.offset, children=children)
