"""Connects to the registry and maps its errors to errors of commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headgate.gateway.cli.errors import CommandError, Unreachable, UsageError
from headgate.gateway.settings.masking import masked_value
from headgate.gateway.settings.registry_address import InvalidRegistryAddress, parse_address

if TYPE_CHECKING:
    from headgate.gateway.schemas.registry_api import RegistryApi


@contextmanager
def registry_at(url: str) -> "Iterator[RegistryApi]":
    """Raises CommandError for every error of the address, the connection, the registry and a schema."""
    import httpx

    from headgate.gateway.schemas.registry_api import TIMEOUT_SECONDS, RegistryApi, RegistryRefused
    from headgate.registry.errors import InvalidSchema

    shown = masked_value(url)
    try:
        address = parse_address(url)
        with httpx.Client(base_url=address.url, auth=address.credentials, timeout=TIMEOUT_SECONDS) as client:
            yield RegistryApi(client)
    except httpx.TransportError as error:
        raise Unreachable(
            f"no schema registry responded at {shown}",
            why=str(error) or type(error).__name__,
            next_step="start one with headgate up, or point --registry (HEADGATE_REGISTRY_URL) at a running one",
        ) from error
    except (InvalidRegistryAddress, httpx.InvalidURL) as error:
        raise UsageError(
            f"--registry {shown} is not a URL", why=str(error), next_step="--registry localhost:8081"
        ) from error
    except RegistryRefused as error:
        from headgate.gateway.cli.faults import explained_refusal

        raise explained_refusal(error) from error
    except InvalidSchema as error:
        raise CommandError("the schema cannot be used", why=str(error)) from error
