"""What the registry refuses to take in, each bound with its reason. Nothing here is configuration."""

from typing import Final

body_bytes_max: Final = 4 * 1024 * 1024
"""One HTTP request. A schema may take a quarter of it: JSON escapes can quadruple a text, references come on top."""

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
"""Pairs of types that one comparison looks at; mutual recursion multiplies the two schemas' named types."""

incompatibilities_max: Final = 1000
"""Differences that one comparison reports. Nobody reads past the first hundred; memory stays bounded."""

page_default: Final = 1000
page_max: Final = 20_000
"""Entries of one list. Confluent answers 1,000 schemas and 20,000 subjects by default."""

changes_kept_max: Final = 100_000
"""Changes that a stream can be resumed over; older ones are dropped."""
