"""A Kafka cluster as its users see it, over the wire protocol alone: any Kafka will do, ours or Apache's."""
