"""Kafka's wire protocol: request parsing with kio, response templates, validation of produced batches."""
