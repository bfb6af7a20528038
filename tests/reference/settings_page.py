"""docs/configuration.md: the settings with their defaults and sources."""

from pathlib import Path

from headgate.gateway.settings.model import Settings, environment_name
from tests.reference.command_page import WRITTEN

_EXAMPLE = """```toml
bootstrap_server = "127.0.0.1:9092"
data_dir = ".headgate"

[broker_config]
log.retention.hours = 24

[topic.create]
partitions = 3
```
"""


def settings_page() -> str:
    rows = []
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True, validated_data={})
        rows.append(f"| `{name}` | {_text(default)} | `{environment_name(name)}` | {field.description} |")
    return "\n".join(
        [
            "# Configuration\n",
            WRITTEN,
            "A setting comes from the first of these sources:\n",
            "1. the command line",
            "2. the environment",
            "3. the project file: `headgate.toml` in the working directory or the nearest parent directory",
            "4. the user file: `~/.config/headgate/config.toml` (or below `XDG_CONFIG_HOME`)",
            "5. the default\n",
            "`headgate config show --origin` shows the source of each value.\n",
            _EXAMPLE,
            "A table named after a command sets its options, such as `[topic.create]` above. "
            "[cli.md](cli.md) lists the options and their environment variables.\n",
            "| setting | default | environment | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
            "`HEADGATE_ONLY`, `HEADGATE_ALLOWED_HOSTS` and `HEADGATE_TRUSTED_PROXIES` are lists separated by spaces or "
            "commas. `HEADGATE_BROKER_CONFIG` contains `name=value` pairs separated by spaces, or a JSON object. In a "
            "file, `broker_config` is a table. Tables from several sources are merged by name. "
            "[broker-configuration.md](broker-configuration.md) lists the broker configs.\n",
            "`registry_url` may contain credentials: `http://user:password@registry:8081`. Write `/` as `%2F`, `?` as "
            "`%3F` and `#` as `%23` in them. Without a scheme, `http://` is assumed. Use a file or the environment for "
            "an address with a password: other users of the machine can read command lines. `headgate` masks "
            "passwords in its output, and `headgate up` passes the address to the proxy through the environment.\n",
        ]
    )


def _text(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return " ".join(f"`{each}`" for each in value) or "none"
    if isinstance(value, dict):
        return "none" if not value else str(value)
    return f"`{value.as_posix() if isinstance(value, Path) else value}`"
