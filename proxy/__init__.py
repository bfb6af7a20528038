"""HTTP to Kafka and back: Confluent's REST API v2 and v3 in front of any Kafka-protocol broker."""
