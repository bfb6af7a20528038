"""Benchmarks: each compares Headgate and a peer in the same run."""
