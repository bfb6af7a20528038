"""Looking after a cluster: brokers, topics, configs, groups, access rules. Knows no HTTP."""
