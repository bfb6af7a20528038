"""Registered payloads as Spark columns. Its room; the functions move in with their own issue."""
