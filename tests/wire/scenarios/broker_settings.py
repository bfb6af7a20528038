"""DescribeConfigs for the broker: the type, default, source and synonyms of each setting."""

from tests.wire.entities import Plain
from tests.wire.scenarios.configs import BROKER, describe
from tests.wire.transcript import Wire

# Settings that depend on the node. The comparison ignores their values.
OF_THE_NODE = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.voters",
        "group.initial.rebalance.delay.ms",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "node.id",
        "offsets.topic.replication.factor",
        "process.roles",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
    }
)


def _without_the_nodes_own(answer: Plain) -> Plain:
    for result in answer["results"]:
        for config in result["configs"]:
            if config["name"] in OF_THE_NODE:
                config["value"] = "<of the node>"
                config["config_source"] = "<of the node>"
                config["synonyms"] = "<of the node>"
                config["is_default"] = "<of the node>"
    return answer


def every_setting_of_the_broker(wire: Wire) -> None:
    wire.ask("describe_configs", 4, describe(BROKER, "1"), keep=_without_the_nodes_own)
