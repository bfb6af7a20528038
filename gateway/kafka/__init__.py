"""Kafka operations of the command line. They work with any Kafka broker."""
