"""Confluent REST API v2."""
