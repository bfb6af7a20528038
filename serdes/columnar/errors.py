"""Errors in the arguments of a call. A bad payload is not an error: it has a reason in a column."""


class ColumnarError(ValueError):
    """The root of all errors."""


class SchemaTooLarge(ColumnarError):
    """The reader schema exceeds a limit when it is converted to columns."""


class BatchTooLarge(ColumnarError):
    """The columns of this batch exceed Arrow's 32-bit offsets. Decode smaller batches."""


class UnknownField(ColumnarError):
    """A projection contains a field that the schema does not have."""


class NotBinary(ColumnarError):
    """The payload column is not binary."""


class NotEncodable(ColumnarError):
    """The columns do not match the schema. The message contains the field."""
