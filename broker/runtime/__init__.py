"""Time, timers, deferred results, time slicing, threads, errors and log rate limits. Independent of Kafka."""
