"""The HTTP contract: documents, media types and the error body."""
