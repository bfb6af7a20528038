"""From an API key to its handler, with fast paths for repeated Produce and Fetch requests."""
