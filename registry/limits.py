"""Limits of the registry, each with its reason. None of them is configurable."""

from typing import Final

BODY_BYTES_MAX: Final = 4 * 1024 * 1024
"""One HTTP request. A schema may take a quarter of it, because JSON escapes can quadruple the text."""

BODY_SILENCE_SECONDS_MAX: Final = 60.0
"""Time without data inside a request body. After that, the response is 408."""

IMPORT_LINE_BYTES_MAX: Final = BODY_BYTES_MAX
"""One line of an NDJSON import contains one registration, so it has the limit of one request."""

SCHEMA_CHARS_MAX: Final = 1024 * 1024
"""Confluent's topic store accepts records of 1 MiB by default. A larger schema could not be migrated to it."""

SCHEMA_DEPTH_MAX: Final = 200
"""Nested types. Parsers recurse with two frames per level, and Python allows 1,000 frames."""

REFERENCES_MAX: Final = 1000
"""Direct and indirect references of one schema. This limits the work of parsing it."""

REFERENCE_DEPTH_MAX: Final = 64
"""The longest chain of references. Longer chains are accidental."""

SUBJECT_CHARS_MAX: Final = 1024
"""Kafka limits topic names to 249 characters. Subject name strategies append record names."""

ID_MAX: Final = 2**31 - 1
"""Ids and versions are Java ints on the wire (four bytes after the magic byte)."""

VERSION_MAX: Final = 2**31 - 1

METADATA_ENTRIES_MAX: Final = 1000
"""Properties, tags and rules of one schema. Each registration of the subject merges all of them."""

COMPATIBILITY_PAIRS_MAX: Final = 200_000
"""Pairs of Avro types that one comparison stores. Mutual recursion multiplies the named types of both schemas."""

COMPATIBILITY_STEPS_MAX: Final = 16_000_000
"""Types, fields and union branches that one Avro comparison visits. Most schemas of the maximum size need fewer than
100,000. Two unions of 1,000 records that share one unqualified name need about 3,000,000, in a few seconds."""

INCOMPATIBILITIES_MAX: Final = 1000
"""Differences that one comparison reports. This limits memory."""

PAGE_DEFAULT: Final = 1000
PAGE_MAX: Final = 20_000
"""Entries of one list. Confluent returns 1,000 schemas and 20,000 subjects by default."""

CHANGES_KEPT_MAX: Final = 100_000
"""Changes after which a client can resume a change stream. Older changes are deleted."""

KEKS_MAX: Final = 10_000
DEKS_MAX: Final = 10_000
"""Confluent's default for KEKs and for DEKs (`dek.registry.max.keys`). This limits the size of lists."""

KEY_NAME_CHARS_MAX: Final = 256
"""The name of a KEK. Names derived from AWS key ARNs have 71 characters or more."""

KEK_CHARS_MAX: Final = 64 * 1024
"""KMS key id, properties and description of one KEK. The private key of a service account takes 2 KiB."""

KEY_MATERIAL_CHARS_MAX: Final = 16 * 1024
"""An encrypted DEK in base64. KMS ciphertexts of 64 bytes are shorter than 1 KiB."""

RESOURCE_CHARS_MAX: Final = 256
"""Name and namespace of an associated resource, as in Confluent's registry. Topic names have up to 249 characters."""

RESOURCE_ID_CHARS_MAX: Final = 1024

ASSOCIATIONS_MAX: Final = 100_000
"""Enough for 50,000 topics with a key and a value each."""

ASSOCIATION_BATCH_MAX: Final = 1000
"""Resources in one batch of associations. Each resource is one transaction."""

ASSOCIATION_SCHEMA_BATCH_MAX: Final = 50
"""Resources in one batch that returns schemas. Each resource has two schemas of up to 1 MiB."""
