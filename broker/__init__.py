"""Kafka-protocol broker: a durable log, embedded in one process."""
