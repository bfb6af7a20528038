"""Sends records to the brokers, in batches that concurrent requests share."""
