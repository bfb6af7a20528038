"""Kafka's wire protocol: frames, messages through kio, record batches, compression."""
