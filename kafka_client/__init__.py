"""Kafka client of all packages: connections, security, metadata, requests, produce and fetch. Works with any broker.

Start with `options` (addresses and settings), `connection` (opens clients) and `errors`. `aiokafka_internals` is the
only module that depends on internals of aiokafka.
"""
