"""Records out of the brokers and into JSON: decoded, filtered, explained where they cannot be read."""
