"""What to do about poison, and about a new version of the schema that appears while a stream runs."""

from enum import StrEnum


class OnPoison(StrEnum):
    """What a row that cannot be decoded becomes."""

    DEAD_LETTER = "DEAD_LETTER"
    """Null, with the reason and the raw bytes beside it."""
    NULL = "NULL"
    """Null, with the reason."""
    FAIL = "FAIL"
    """The task fails, naming the reason, the schema id and the first bytes."""


class OnNewVersion(StrEnum):
    """What happens once payloads of a newer version of the subject arrive than the reader's."""

    KEEP = "KEEP"
    """They are read into the reader's schema, as Avro's resolution allows; those that cannot be are UNRESOLVABLE."""
    FAIL = "FAIL"
    """The task fails with advice, before the first of them is decoded."""
    RESTART = "RESTART"
    """As FAIL, so that the query starts again from its checkpoint with the new reader; see `spark_udfs.restarting`."""
