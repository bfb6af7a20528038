"""State of the broker, pure: topics, configs, groups, offsets, producers."""
