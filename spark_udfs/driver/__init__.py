"""Code that runs on the Spark driver: choose schemas, plan the decoding, configure the session."""
