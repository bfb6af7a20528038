"""Text formats of records: lossless JSON lines and kcat format strings. No I/O."""
