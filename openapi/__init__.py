"""The HTTP contract: OpenAPI documents and media types."""
