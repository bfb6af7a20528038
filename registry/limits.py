"""What the registry refuses to take in, each bound with its reason. Nothing here is configuration."""

from typing import Final

body_bytes_max: Final = 4 * 1024 * 1024
"""One HTTP request. A schema may take a quarter of it: JSON escapes can quadruple a text, references come on top."""

body_silence_seconds_max: Final = 60.0
"""How long a client may send nothing in the middle of a body. Then the request is answered with 408."""

import_line_bytes_max: Final = body_bytes_max
"""One line of an NDJSON import carries one registration, so it is bounded like one request."""

schema_chars_max: Final = 1024 * 1024
"""Confluent's topic store takes records of 1 MiB by default: a larger schema could not move there."""

schema_depth_max: Final = 200
"""Types inside types. Parsers recurse; at two frames a level this stays clear of Python's limit of 1,000 frames."""

references_max: Final = 1000
"""References of one schema, those of its references included: the work to parse it stays bounded."""

reference_depth_max: Final = 64
"""Longest chain of references. Chains this long are accidents."""

subject_chars_max: Final = 1024
"""Kafka's topic names stop at 249 characters; strategies put record names behind them."""

id_max: Final = 2**31 - 1
"""Ids and versions are Java ints on the wire (four bytes behind the magic byte)."""

version_max: Final = 2**31 - 1

metadata_entries_max: Final = 1000
"""Properties, tags and rules of one schema: each is merged on every registration of its subject."""

compatibility_pairs_max: Final = 200_000
"""Pairs of Avro types that one comparison keeps; mutual recursion multiplies the two schemas' named types."""

compatibility_steps_max: Final = 16_000_000
"""Types, fields and union branches that one Avro comparison looks at. Most schemas of the largest size need fewer than
100,000. Two unions of 1,000 records that all share one unqualified name need about 3,000,000, in a few seconds."""

incompatibilities_max: Final = 1000
"""Differences that one comparison reports. Nobody reads past the first hundred; memory stays bounded."""

page_default: Final = 1000
page_max: Final = 20_000
"""Entries of one list. Confluent answers 1,000 schemas and 20,000 subjects by default."""

changes_kept_max: Final = 100_000
"""Changes that a stream can be resumed over; older ones are dropped."""

keks_max: Final = 10_000
deks_max: Final = 10_000
"""Confluent's default for each of both (`dek.registry.max.keys`). Lists of keys stay bounded."""

key_name_chars_max: Final = 256
"""The name of a KEK. Names that are derived from AWS key ARNs have 71 characters and more."""

kek_chars_max: Final = 64 * 1024
"""KMS key id, properties and description of one KEK. A service account's private key takes 2 KiB."""

key_material_chars_max: Final = 16 * 1024
"""An encrypted DEK in base64. KMS ciphertexts of 64 bytes stay below 1 KiB."""

resource_chars_max: Final = 256
"""Name and namespace of an associated resource, as in Confluent's registry. Topic names end at 249."""

resource_id_chars_max: Final = 1024

associations_max: Final = 100_000
"""Half as many topics as a large Kafka cluster has partitions, each with a key and a value."""

association_batch_max: Final = 1000
"""Resources in one batch of associations. Each one is a transaction of its own."""

association_schema_batch_max: Final = 50
"""Resources in one batch that returns schemas: two of up to 1 MiB each."""
