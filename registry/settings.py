"""Settings of a registry."""

from dataclasses import dataclass
from functools import cached_property

from headgate.registry.model import Config, Level


@dataclass(frozen=True)
class RegistrySettings:
    compatibility_level: Level = Level.BACKWARD
    """The default, if neither the subject, its context nor the global scope sets a level."""
    mode_changes_allowed: bool = True
    validate_fields: bool = False
    """Whether reserved fields are enforced by default (Confluent's schema.validate.fields)."""
    validate_names: bool = True
    detailed_conflict_code: bool = False
    """Error code 40901 instead of 409 for incompatible schemas, as in Confluent's registry since late 2025."""
    cluster_id: str = "headgate"
    response_cache_bytes_max: int = 64 * 1024 * 1024
    """Memory for cached responses."""

    @cached_property
    def defaults(self) -> Config:
        """The config that applies if no scope sets a value."""
        return Config(
            compatibility_level=self.compatibility_level,
            validate_fields=self.validate_fields,
            validate_names=self.validate_names,
        )
