"""The client of the schema registry for commands."""

from headgate.gateway.cli.errors import UsageError
from headgate.gateway.cli.options import RuleAction
from headgate.gateway.settings.masking import masked_value
from headgate.gateway.settings.registry_address import InvalidRegistryAddress, parse_address
from headgate.serdes import AsyncRegistryClient, BasicAuth, RegistrySettings, RulePolicy


def open_registry(url: str, rules: RuleAction) -> AsyncRegistryClient:
    """Raises UsageError if the address is not a URL."""
    try:
        address = parse_address(url)
    except InvalidRegistryAddress as error:
        raise UsageError(f"--registry {masked_value(url)} is not a URL", why=str(error)) from error
    auth = None if address.credentials is None else BasicAuth(*address.credentials)
    return AsyncRegistryClient(RegistrySettings(urls=(address.url,), auth=auth, rules=RulePolicy(rules)))
