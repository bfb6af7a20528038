"""Maps API keys to handlers. Contains the fast paths for repeated Produce and Fetch requests."""
