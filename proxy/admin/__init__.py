"""Administration of a cluster: brokers, topics, configs, groups and ACLs. Does not depend on HTTP."""
