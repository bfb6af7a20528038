"""What the caller of the columnar decoder can get wrong; a bad payload is not among them, but a reason in a column."""


class ColumnarError(ValueError):
    """The root of the faults of a call."""


class SchemaTooLarge(ColumnarError):
    """The reader's schema, written out as columns, is beyond a limit."""


class BatchTooLarge(ColumnarError):
    """The columns of this batch do not fit Arrow's 32-bit offsets: decode it in smaller pieces."""


class UnknownField(ColumnarError):
    """A projection names a field that the schema does not have."""


class NotBinary(ColumnarError):
    """The column of payloads is of a type that holds no bytes."""


class NotEncodable(ColumnarError):
    """The columns are not of the schema that they should be written with. Names the field."""
