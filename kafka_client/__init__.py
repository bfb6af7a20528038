"""Kafka client of all packages: connections, security, metadata, requests, produce and fetch. Works with any Kafka.

Start with `options` (what to connect to), `connection` (how) and `errors`. `aiokafka_internals` is the only module that
depends on internals of aiokafka.
"""
