"""What the registry refuses to take in, each bound with its reason. Nothing here is configuration."""

from typing import Final

BODY_BYTES_MAX: Final = 4 * 1024 * 1024
"""One HTTP request. A schema may take a quarter of it: JSON escapes can quadruple a text, references come on top."""

BODY_SILENCE_SECONDS_MAX: Final = 60.0
"""How long a client may send nothing in the middle of a body. Then the request is answered with 408."""

IMPORT_LINE_BYTES_MAX: Final = BODY_BYTES_MAX
"""One line of an NDJSON import carries one registration, so it is bounded like one request."""

SCHEMA_CHARS_MAX: Final = 1024 * 1024
"""Confluent's topic store takes records of 1 MiB by default: a larger schema could not move there."""

SCHEMA_DEPTH_MAX: Final = 200
"""Types inside types. Parsers recurse; at two frames a level this stays clear of Python's limit of 1,000 frames."""

REFERENCES_MAX: Final = 1000
"""References of one schema, those of its references included: the work to parse it stays bounded."""

REFERENCE_DEPTH_MAX: Final = 64
"""Longest chain of references. Chains this long are accidents."""

SUBJECT_CHARS_MAX: Final = 1024
"""Kafka's topic names stop at 249 characters; strategies put record names behind them."""

ID_MAX: Final = 2**31 - 1
"""Ids and versions are Java ints on the wire (four bytes behind the magic byte)."""

VERSION_MAX: Final = 2**31 - 1

METADATA_ENTRIES_MAX: Final = 1000
"""Properties, tags and rules of one schema: each is merged on every registration of its subject."""

COMPATIBILITY_PAIRS_MAX: Final = 200_000
"""Pairs of Avro types that one comparison keeps; mutual recursion multiplies the two schemas' named types."""

COMPATIBILITY_STEPS_MAX: Final = 16_000_000
"""Types, fields and union branches that one Avro comparison looks at. Most schemas of the largest size need fewer than
100,000. Two unions of 1,000 records that all share one unqualified name need about 3,000,000, in a few seconds."""

INCOMPATIBILITIES_MAX: Final = 1000
"""Differences that one comparison reports. Nobody reads past the first hundred; memory stays bounded."""

PAGE_DEFAULT: Final = 1000
PAGE_MAX: Final = 20_000
"""Entries of one list. Confluent answers 1,000 schemas and 20,000 subjects by default."""

CHANGES_KEPT_MAX: Final = 100_000
"""Changes that a stream can be resumed over; older ones are dropped."""

KEKS_MAX: Final = 10_000
DEKS_MAX: Final = 10_000
"""Confluent's default for each of both (`dek.registry.max.keys`). Lists of keys stay bounded."""

KEY_NAME_CHARS_MAX: Final = 256
"""The name of a KEK. Names that are derived from AWS key ARNs have 71 characters and more."""

KEK_CHARS_MAX: Final = 64 * 1024
"""KMS key id, properties and description of one KEK. A service account's private key takes 2 KiB."""

KEY_MATERIAL_CHARS_MAX: Final = 16 * 1024
"""An encrypted DEK in base64. KMS ciphertexts of 64 bytes stay below 1 KiB."""

RESOURCE_CHARS_MAX: Final = 256
"""Name and namespace of an associated resource, as in Confluent's registry. Topic names end at 249."""

RESOURCE_ID_CHARS_MAX: Final = 1024

ASSOCIATIONS_MAX: Final = 100_000
"""Half as many topics as a large Kafka cluster has partitions, each with a key and a value."""

ASSOCIATION_BATCH_MAX: Final = 1000
"""Resources in one batch of associations. Each one is a transaction of its own."""

ASSOCIATION_SCHEMA_BATCH_MAX: Final = 50
"""Resources in one batch that returns schemas: two of up to 1 MiB each."""
