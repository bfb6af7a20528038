"""Kafka record batches to Arrow columns."""
