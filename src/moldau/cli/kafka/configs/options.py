"""The options of `kafka-configs.sh`, and the entities that they name."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any, NamedTuple

from moldau.cli.completion.kinds import BROKER, GROUP, TOPIC, USER, Completes, Kind
from moldau.cli.failures import UsageError
from moldau.cli.kafka.bootstrap import add_bootstrap_options
from moldau.cli.kafka.combinations import check_apart
from moldau.cli.parsing import Parser

EXAMPLES = """\
examples:
  moldau configs --describe --topic orders
  moldau configs --describe --broker 1 --all
  moldau configs --alter --topic orders --add-config 'retention.ms=86400000,cleanup.policy=[compact,delete]'
  moldau configs --alter --topic orders --delete-config retention.ms
  moldau configs --alter --broker-defaults --add-config log.cleaner.threads=2
  moldau configs --alter --user alice --add-config 'SCRAM-SHA-512=[password=secret]'
  moldau configs --alter --user alice --client app --add-config producer_byte_rate=1048576
"""

TOPICS, CLIENTS, USERS, BROKERS, IPS, CLIENT_METRICS, GROUPS, BROKER_LOGGERS = TYPES = (
    "topics", "clients", "users", "brokers", "ips", "client-metrics", "groups", "broker-loggers",
)  # fmt: skip
NAMED = {
    "topic": TOPICS, "client": CLIENTS, "user": USERS, "broker": BROKERS, "broker-logger": BROKER_LOGGERS, "ip": IPS,
    "client-metrics": CLIENT_METRICS, "group": GROUPS,
}  # fmt: skip
DEFAULTS = {"client-defaults": CLIENTS, "user-defaults": USERS, "broker-defaults": BROKERS, "ip-defaults": IPS}
HAS_DEFAULT = (USERS, CLIENTS, BROKERS, IPS)
_SETTINGS = Completes("K=V,K=[V,V]", Kind.ENTITY_CONFIGS, separator=",", ending="=")
_KEYS = Completes("K,K", Kind.ENTITY_CONFIGS, separator=",")
_ENTITY = Completes("NAME", Kind.ENTITIES)
_NAMES = {"topic": TOPIC, "broker": BROKER, "broker-logger": BROKER, "group": GROUP, "user": USER}
DEFAULT = ""
"""The name of an entity that stands for all that have no configuration of their own."""


class Entities(NamedTuple):
    """Names belong to the types in order; a type without one means all of it."""

    types: Sequence[str]
    names: Sequence[str]

    @property
    def type(self) -> str:
        return self.types[0]

    @property
    def name(self) -> str | None:
        return self.names[0] if self.names else None


class _Named(Action):
    """--entity-name and --entity-default share one list, for their order says which type each belongs to."""

    def __call__(self, _parser: ArgumentParser, options: Namespace, values: Any, _option: str | None = None) -> None:
        options.entity_names = [*options.entity_names, DEFAULT if self.nargs == 0 else values]


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau configs",
        description="Describe and alter the configurations of topics, brokers, groups, users, clients and addresses,"
        " by the options of kafka-configs.sh.",
        epilog=EXAMPLES,
        allow_abbrev=False,
    )
    _add_options(parser)
    add_bootstrap_options(parser)
    options = parser.parse_args(arguments)
    if options.alter == options.describe:
        parser.error("Command must include exactly one action: --describe, --alter")
    check_apart(parser, options, "describe", ("alter", "add-config", "delete-config"))
    options.entities = _entities(options)
    _check(options)
    return options


def _add_options(parser: Parser) -> None:
    parser.add_argument("--alter", action="store_true", help="set or remove configurations")
    parser.add_argument("--describe", action="store_true", help="the configurations of these, or of all of a type")
    parser.add_argument("--all", action="store_true", help="those that are defaults, too, of --describe")
    parser.add_argument(
        "--add-config", metavar=_SETTINGS, help="what to set; a value with commas stands in square brackets"
    )
    parser.add_argument("--add-config-file", metavar="FILE", help="a properties file of what to set")
    parser.add_argument("--delete-config", metavar=_KEYS, action="append", default=[], help="what to remove")
    parser.add_argument("--force", action="store_true", help="is taken and does nothing: there are no questions")
    what = parser.add_argument_group("what has configurations")
    for name, kind in NAMED.items():
        what.add_argument(f"--{name}", metavar=_NAMES.get(name, "NAME"), help=f"one of the {kind}")
    for name, kind in DEFAULTS.items():
        what.add_argument(f"--{name}", action="store_true", help=f"all {kind} without one of their own")
    what.add_argument(
        "--entity-type",
        metavar=Completes("TYPE", words=TYPES),
        action="append",
        default=[],
        help=f"{', '.join(TYPES)}; users and clients go together",
    )
    what.add_argument(
        "--entity-name",
        metavar=_ENTITY,
        action=_Named,
        dest="entity_names",
        default=[],
        help="one of it",
    )
    what.add_argument("--entity-default", action=_Named, nargs=0, dest="entity_names", help="the default of it")


def _entities(options: Namespace) -> Entities:
    def value(name: str) -> Any:
        return getattr(options, name.replace("-", "_"))

    named = [name for name in NAMED if value(name) is not None]
    defaults = [name for name in DEFAULTS if value(name)]
    if (options.entity_type or options.entity_names) and (named or defaults):
        raise UsageError("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    return Entities(
        types=[*options.entity_type, *(NAMED[name] for name in named), *(DEFAULTS[name] for name in defaults)],
        names=[*options.entity_names, *(value(name) for name in named), *(DEFAULT for _ in defaults)],
    )


def _check(options: Namespace) -> None:
    entities: Entities = options.entities
    _check_types(entities.types)
    _check_names(entities)
    if options.describe:
        _check_describe(entities)
    else:
        _check_alter(entities, options)


def _check_types(types: Sequence[str]) -> None:
    twice = [each for at, each in enumerate(types) if each in types[:at]]
    if twice:
        raise UsageError(f"Duplicate entity type(s) specified: {','.join(twice)}")
    for each in types:
        if each not in TYPES:
            raise UsageError(f"Invalid entity type {each}, the entity type must be one of {', '.join(TYPES)}")
    if not types:
        raise UsageError("At least one entity type must be specified")
    if len(types) > 1 and {*types} != {USERS, CLIENTS}:
        raise UsageError("Only 'users' and 'clients' entity types may be specified together")


def _check_names(entities: Entities) -> None:
    kind = entities.type
    if len(entities.names) > len(entities.types):
        raise UsageError("More entity names specified than entity types")
    for name in filter(None, entities.names):
        if kind in (BROKERS, BROKER_LOGGERS) and not _is_number(name):
            raise UsageError(f"The entity name for {kind} must be a valid integer broker id, but it is: {name}")
        if kind == IPS and not _is_address(name):
            raise UsageError(f"The entity name for {kind} must be a valid IP or resolvable host, but it is: {name}")


def _is_number(name: str) -> bool:
    return name.isascii() and name.removeprefix("-").isdecimal()


def _is_address(name: str) -> bool:
    import socket

    try:
        return bool(socket.getaddrinfo(name, None))
    except OSError:
        return False


def _check_describe(entities: Entities) -> None:
    if DEFAULT in entities.names and entities.type not in HAS_DEFAULT:
        raise UsageError(f"--entity-default must not be specified with --describe of {entities.type}")
    if entities.type == BROKER_LOGGERS and not entities.name:
        raise UsageError(f"An entity name must be specified with --describe of {entities.type}")


def _check_alter(entities: Entities, options: Namespace) -> None:
    if entities.type in HAS_DEFAULT:
        if not entities.names:
            raise UsageError(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
            )
    elif not entities.name:
        raise UsageError(f"An entity name must be specified with --alter of {entities.type}")
    if options.add_config is not None and options.add_config_file is not None:
        raise UsageError("Only one of --add-config or --add-config-file must be specified")
    if options.add_config is None and options.add_config_file is None and not options.delete_config:
        raise UsageError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    if len(entities.types) != len(entities.names):
        raise UsageError("An entity name must be specified for every entity type")
