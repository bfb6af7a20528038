"""Settings of a registry, from `gateway` or from the command line of `python -m headgate.registry`."""

from dataclasses import dataclass
from functools import cached_property

from headgate.registry.model import Config, Level


@dataclass(frozen=True)
class RegistrySettings:
    compatibility_level: Level = Level.BACKWARD
    """Where neither subject, context nor the global scope sets one."""
    mode_changes_allowed: bool = True
    validate_fields: bool = False
    """Whether reserved fields are enforced by default (Confluent's schema.validate.fields)."""
    validate_names: bool = True
    detailed_conflict_code: bool = False
    """Answer an incompatible schema with error code 40901 instead of 409, as Confluent does since late 2025."""
    cluster_id: str = "headgate"
    response_cache_bytes_max: int = 64 * 1024 * 1024
    """Memory for cached responses."""

    @cached_property
    def defaults(self) -> Config:
        """What holds where nobody configured anything."""
        return Config(
            compatibility_level=self.compatibility_level,
            validate_fields=self.validate_fields,
            validate_names=self.validate_names,
        )
