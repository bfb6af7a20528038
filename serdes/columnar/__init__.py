"""A batch of framed Avro to Arrow columns and back."""
