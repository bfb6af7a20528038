"""HTTP to Kafka and back. Its room; the REST proxy moves in with its own issue."""
