"""The connection to the brokers, shared by everything the proxy does."""
