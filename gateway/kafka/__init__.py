"""Kafka operations of the command line. Works with any Kafka."""
