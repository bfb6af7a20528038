"""Consumers that live on the server: v2 instances and group streams, each owned by one worker."""
