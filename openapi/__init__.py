"""The HTTP contract: documents, media types, the error body, and what the head of a request may be."""
