"""Checks whether `reader` can read data of `writer`."""

from collections.abc import Iterable, Iterator
from itertools import islice

from headgate.registry.compatibility.incompatibility import Incompatibility
from headgate.registry.compatibility.protobuf.comparison import Comparison
from headgate.registry.compatibility.protobuf.explanations import EXPLANATIONS
from headgate.registry.compatibility.protobuf.kinds import Difference, Kind
from headgate.registry.compatibility.protobuf.types import Side
from headgate.registry.formats.protobuf import ProtobufSchema
from headgate.registry.limits import INCOMPATIBILITIES_MAX


def differences(reader: ProtobufSchema, writer: ProtobufSchema) -> Iterator[Difference]:
    """All changes from writer to reader, including compatible ones."""
    return Comparison(Side(writer), Side(reader)).run()


def check(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Incompatibility]:
    """All differences that prevent the reader from reading data of the writer. Empty if compatible."""
    broken = (one for one in differences(reader, writer) if not one.kind.compatible)
    return [_explained(one) for one in islice(broken, INCOMPATIBILITIES_MAX)]


def check_reserved(
    reader: ProtobufSchema, reader_reserved: Iterable[str], writer_reserved: Iterable[str]
) -> list[Incompatibility]:
    """Names that the metadata property `confluent:reserved` reserves.

    They must stay reserved, and the first message, which represents the schema, must not use them.
    """
    kept = list(dict.fromkeys(reader_reserved))
    found = [
        Difference(Kind.RESERVED_FIELD_REMOVED, name) for name in dict.fromkeys(writer_reserved) if name not in kept
    ]
    messages = reader.main.proto.message_type
    used = {field.name for field in messages[0].field} if messages else set()
    found += [Difference(Kind.FIELD_CONFLICTS_WITH_RESERVED_FIELD, name) for name in kept if name in used]
    return [_explained(one) for one in found]


def _explained(difference: Difference) -> Incompatibility:
    message, advice = EXPLANATIONS[difference.kind]
    return Incompatibility(
        kind=difference.kind.value,
        path=difference.path,
        message=message,
        reader=difference.reader,
        writer=difference.writer,
        advice=advice,
    )
