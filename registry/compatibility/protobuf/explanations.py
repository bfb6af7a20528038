"""A message and advice for each kind of incompatible difference."""

from headgate.registry.compatibility.protobuf.kinds import Kind

EXPLANATIONS: dict[Kind, tuple[str, str]] = {
    Kind.PACKAGE_CHANGED: (
        "The package differs, so every type has another full name",
        "Keep the package, or register the schema under another subject.",
    ),
    Kind.MESSAGE_REMOVED: (
        "The reader's schema lacks a message that the writer's has",
        "Keep the message; one that nobody uses may stand there deprecated.",
    ),
    Kind.FIELD_KIND_CHANGED: (
        "The field is of another kind: scalar, message, group and map are not read as each other",
        "Keep the type, and add a field with a new number for the new one.",
    ),
    Kind.FIELD_SCALAR_KIND_CHANGED: (
        "The field has a scalar type with another form on the wire",
        "Keep to types of one group (int32, int64, uint32, uint64, bool, enums; sint32, sint64; string, bytes; "
        "fixed32, sfixed32; fixed64, sfixed64), or add a field with a new number.",
    ),
    Kind.FIELD_NAMED_TYPE_CHANGED: (
        "The field's message is another one, or differs inside in a way that cannot be read",
        "Keep the message type, or add a field with a new number for the new one.",
    ),
    Kind.FIELD_NUMERIC_LABEL_CHANGED: (
        "The label of a numeric field differs; repeated numbers are packed and single ones are not",
        "Keep the label, or add a field with a new number.",
    ),
    Kind.REQUIRED_FIELD_ADDED: (
        "The reader requires a field that the writer does not set",
        "Make the field optional.",
    ),
    Kind.REQUIRED_FIELD_REMOVED: (
        "The reader's schema lacks a field that the writer's requires",
        "Keep the field.",
    ),
    Kind.ONEOF_FIELD_REMOVED: (
        "The reader's schema lacks a member of a oneof, so it cannot tell that one was set",
        "Keep the member.",
    ),
    Kind.MULTIPLE_FIELDS_MOVED_TO_ONEOF: (
        "Fields that could be set together now exclude each other: only the last on the wire survives",
        "Move at most one existing field into a new oneof.",
    ),
    Kind.FIELD_MOVED_TO_EXISTING_ONEOF: (
        "A field or oneof now excludes the members of another that could be set beside it",
        "Leave it outside, or put new fields only into the oneof.",
    ),
    Kind.RESERVED_FIELD_REMOVED: (
        "A name that confluent:reserved set aside is no longer reserved",
        "Keep the name in confluent:reserved.",
    ),
    Kind.FIELD_CONFLICTS_WITH_RESERVED_FIELD: (
        "A field uses a name that confluent:reserved sets aside",
        "Give the field another name.",
    ),
}
