"""Arrow columns to framed Avro."""
