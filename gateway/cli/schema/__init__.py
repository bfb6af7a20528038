"""`headgate schema`: a client of the registry's HTTP API, which also works with Confluent's registry."""

from headgate.gateway.cli.schema.app import app

__all__ = ["app"]
