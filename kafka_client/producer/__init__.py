"""Idempotent producer (KIP-98) that reports unknown outcomes. Shared by the proxy, the CLI and the Spark writer."""
