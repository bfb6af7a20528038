"""A soak test of a pipeline, outside the suite: `make soak SOAK_MINUTES=60`."""
