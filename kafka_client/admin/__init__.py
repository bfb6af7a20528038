"""Administration of a cluster: brokers, topics, configs, groups, offsets and ACLs. Functions raise KafkaClientError."""
