"""REST proxy: Confluent's v2 and v3 APIs for any broker that speaks the Kafka protocol."""
