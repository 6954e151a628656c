"""Keys of Kafka's controller quorum: as Kafka 4.3 defines them, in its order."""

from __future__ import annotations

import re

from moldau.core.config.definitions import ConfigConflict, ConfigDef, ConfigType, ConfigValue, at_least

BOOLEAN = ConfigType.BOOLEAN
INT = ConfigType.INT
LIST = ConfigType.LIST

_VOTER = r"[0-9]+@.+:[0-9]+"
_SERVER = r"[^@]+:[0-9]+"


def _voters(name: str, value: ConfigValue) -> None:
    assert isinstance(value, tuple)
    if not all(re.fullmatch(_VOTER, each) for each in value):
        message = (
            f"Invalid configuration value for {name}. Each entry should be in the form `{{id}}@{{host}}:{{port}}`."
        )
        raise ConfigConflict(name, ",".join(value), message)


def _bootstrap_servers(name: str, value: ConfigValue) -> None:
    assert isinstance(value, tuple)
    for each in value:
        if not re.fullmatch(_SERVER, each):
            message = (
                f"Failed to parse host name from {each} for the configuration {name}. "
                'Each entry should be in the form "{host}:{port}"'
            )
            raise ConfigConflict(name, ",".join(value), message)


QUORUM_KEYS = (
    ConfigDef(
        "controller.quorum.voters", LIST, (), _voters, "Kafka's list of controllers; empty, or one entry, this node."
    ),
    ConfigDef(
        "controller.quorum.bootstrap.servers",
        LIST,
        (),
        _bootstrap_servers,
        "Kafka's list of controllers; empty, or one entry, this node.",
    ),
    ConfigDef("controller.quorum.election.timeout.ms", INT, 1000, at_least(0)),
    ConfigDef("controller.quorum.fetch.timeout.ms", INT, 2000, at_least(0)),
    ConfigDef("controller.quorum.election.backoff.max.ms", INT, 1000, at_least(0)),
    ConfigDef("controller.quorum.append.linger.ms", INT, 25, at_least(0)),
    ConfigDef("controller.quorum.request.timeout.ms", INT, 2000, at_least(0)),
    ConfigDef("controller.quorum.retry.backoff.ms", INT, 20, at_least(0)),
    ConfigDef("controller.quorum.auto.join.enable", BOOLEAN, False),
    ConfigDef("controller.quorum.fetch.snapshot.max.bytes", INT, 1_048_576, at_least(1)),
    ConfigDef("controller.quorum.fetch.max.bytes", INT, 1_048_576, at_least(1)),
)
