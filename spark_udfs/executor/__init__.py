"""Code that runs in Spark's Python workers: decode and encode payloads, fetch writer schemas."""
