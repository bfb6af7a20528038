"""Kafka client of all packages: connections, security, metadata, requests, produce and fetch. Works with any Kafka.

Layers, from the bottom: `errors`, `properties`, `security` <- `aiokafka_internals` <- `connection`, `diagnosis` <-
`metadata`, `requests`, `cluster` <- `producer`, `fetch`, `consumer`.
"""
