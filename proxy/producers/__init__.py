"""Records on their way to the brokers, in batches that concurrent requests share."""
