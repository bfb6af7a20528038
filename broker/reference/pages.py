"""The reference pages as Markdown: the Kafka APIs, what deviates from Kafka, and the configs."""

from collections.abc import Iterable, Mapping

from headgate.broker.protocol.request_guard import REQUEST_ITEMS_MAX
from headgate.broker.reference.clients import CLIENTS, NEWEST_SENT
from headgate.broker.reference.handlers import ServedApi, served_apis
from headgate.broker.state.configs.broker_definitions import BROKER_CONFIGS
from headgate.broker.state.configs.definition import Definition
from headgate.broker.state.configs.topic_definitions import TOPIC_CONFIGS
from headgate.broker.state.configs.values import text_of

_WRITTEN = "Written by `python -m headgate.broker.reference`; a test fails when it is stale.\n"


def pages() -> Mapping[str, str]:
    """The text of each page by its file name in docs/."""
    apis = served_apis()
    return {
        "broker-configuration.md": configuration_page(),
        "deviations.md": deviations_page(apis),
        "kafka-apis.md": apis_page(apis),
    }


def apis_page(apis: Iterable[ServedApi]) -> str:
    rows = []
    for api in apis:
        sent = NEWEST_SENT.get(api.key, (None,) * len(CLIENTS))
        used = ["-" if version is None else str(min(version, api.versions[-1])) for version in sent]
        rows.append(f"| {api.name} | {api.key} | {_span(api.versions)} | {' | '.join(used)} | {api.summary} |")
    return "\n".join(
        [
            "# Kafka APIs\n",
            _WRITTEN,
            "The APIs and versions that the broker advertises, and the version that each client settles on.\n",
            f"| API | key | versions | {' | '.join(CLIENTS)} | what it does |",
            f"|---|---|---|{'---|' * len(CLIENTS)}---|",
            *rows,
            "",
        ]
    )


def deviations_page(apis: Iterable[ServedApi]) -> str:
    parts = [
        "# What differs from Apache Kafka 4.3.1\n",
        _WRITTEN,
        "There is one node: it leads every partition, is its only replica, and is the controller. `acks=all` means on "
        "disk (fdatasync before the answer), where Kafka means in the page cache of the replicas; "
        "`headgate.acks.all.fsync=false` relaxes it to the page cache. Changes to topics and configs are on disk "
        "before they are answered, so the timeouts of admin requests never strike, and what was changed is visible at "
        "once.\n",
        "Not there yet: transactions, compaction of user topics, groups of the consumer protocol (KIP-848), share and "
        "streams groups, SASL, TLS, ACLs, quotas, tiered storage. The log says so when a client uses transactions, the "
        "consumer protocol or `cleanup.policy=compact`. Of a controller quorum and of feature levels there is nothing "
        "to tell: `kafka-metadata-quorum` finds no such API, `kafka-features` an empty list.\n",
        f"A request may contain at most {REQUEST_ITEMS_MAX:,} items (topics, partitions, groups, configs). For a "
        "larger request, the broker closes the connection and logs the reason. The number of in-flight requests per "
        "connection is limited, too: the broker reads no more requests until the client reads the responses.\n",
        "Each API below deviates where its list says so. An API that is missing here behaves as Kafka's.\n",
    ]
    parts.extend(f"## {api.name} ({api.key})\n\n{api.deviations}\n" for api in apis if api.deviations)
    return "\n".join(parts)


_LIMITS_OF_THE_MACHINE = (
    "## Full disk\n",
    "The broker keeps a reserve of up to 4 MiB in its data directory (the file `reserve`; a sixteenth of a small file "
    "system). While the disk is full, produce requests fail with KAFKA_STORAGE_ERROR and are accepted again as soon as "
    "there is space. DeleteRecords, DeleteTopics, retention, config changes, a stop and a start may use the reserve. "
    "The broker is then read-only until the reserve can be allocated again, which takes free space of twice its size. "
    "A start on a full disk serves all records, and the log says that the broker is read-only.\n",
    "## File descriptors\n",
    "At start the broker raises the soft limit of open files (`ulimit -n`) to the hard limit. All partitions share a "
    "cache of open files that takes what a quarter of the limit for connections and 64 other descriptors leave. With "
    "more partitions than that, files are closed and opened again as they are used. If more partitions are written to "
    "than fit, a file with unsynced records is synced before it is closed, which makes acks=1 slower: raise the "
    "limit.\n",
)


def configuration_page() -> str:
    return "\n".join(
        [
            "# Configuration of the broker and of topics\n",
            _WRITTEN,
            "Names, types, defaults and bounds are those of Apache Kafka 4.3.1, except for the broker's `headgate.` "
            "configs and the defaults named under DescribeConfigs in [deviations.md](deviations.md). A config marked "
            "“no effect” is accepted and shown, and changes nothing, for the reason given.\n",
            "## Topics\n",
            "Set with CreateTopics, IncrementalAlterConfigs or AlterConfigs; what a topic does not set follows the "
            "broker's config of the last column.\n",
            "| config | type | default | meaning | broker's config |",
            "|---|---|---|---|---|",
            *(_topic_row(definition) for definition in TOPIC_CONFIGS.values() if not definition.hidden),
            "",
            "## Broker\n",
            "Given at start with `--set name=value`; those that change while running also with "
            'IncrementalAlterConfigs, for this broker or (broker `""`) for all. What was altered outlives a restart '
            "and wins over what is given at start.\n",
            "| config | type | default | changes | meaning |",
            "|---|---|---|---|---|",
            *(_broker_row(definition) for definition in sorted(BROKER_CONFIGS.values(), key=lambda each: each.name)),
            "",
            *_LIMITS_OF_THE_MACHINE,
        ]
    )


def _topic_row(definition: Definition) -> str:
    names = ", ".join(f"`{name}`" for name in definition.broker_names) or "-"
    return f"{_start(definition)} | {_meaning(definition)} | {names} |"


def _broker_row(definition: Definition) -> str:
    return f"{_start(definition)} | {definition.update.value} | {_meaning(definition)} |"


def _start(definition: Definition) -> str:
    default = text_of(definition.default)
    shown = "-" if default is None else f"`{default}`" if default else "empty"
    return f"| `{definition.name}` | {definition.type.name.lower()} | {shown}"


def _meaning(definition: Definition) -> str:
    effect = f" *No effect: {definition.without_effect}.*" if definition.without_effect else ""
    return definition.documentation + effect


def _span(versions: range) -> str:
    return f"{versions[0]}-{versions[-1]}" if len(versions) > 1 else str(versions[0])
