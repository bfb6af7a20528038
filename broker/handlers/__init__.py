"""One file per Kafka API: its versions, its behaviour, and where it deviates."""
