"""Framed Avro to Arrow columns."""
