"""Plain, picklable values that the driver creates and sends to the executors with the query plan."""
