"""Kafka's byte formats: record batches, records, compression and messages. No I/O, and no import of other packages."""
