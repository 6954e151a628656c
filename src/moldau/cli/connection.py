"""Reaching a cluster: the options that every tool shares, and the client properties that come of them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from argparse import _ArgumentGroup as ArgumentGroup
from collections.abc import Sequence

from moldau.cli.completion.kinds import PROFILE
from moldau.cli.failures import CommandFailed, UsageError
from moldau.cli.settling import TIMEOUT_S, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

DEFAULT_BOOTSTRAP_SERVERS = "localhost:9092"
BOOTSTRAP_VARIABLE = "MOLDAU_BOOTSTRAP_SERVERS"
CLIENT_ID = "moldau-cli"

# What one file of properties says to Confluent's serializers, which Kafka's clients do not know.
REGISTRY_PREFIXES = ("schema.registry.", "basic.auth.", "bearer.auth.")
SERIALIZER_PROPERTIES = frozenset(
    {
        "auto.register.schemas",
        "use.latest.version",
        "use.schema.id",
        "normalize.schemas",
        "schema.id.serializer",
        "key.subject.name.strategy",
        "value.subject.name.strategy",
        "schema.context",
    }
)

_ESCAPE = r"\\(u([0-9a-fA-F]{4})|.)"
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_CONTINUED = r"\\\r?\n[ \t]*"


def add_connection_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("connection")
    _add_servers(group)
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        help=f"how long to wait for an answer (default: {TIMEOUT_S:g})",
    )
    _add_settings(group, files=("--command-config",), properties=("-X",))


def add_kafka_connection_options(
    parser: ArgumentParser, *, files: Sequence[str] = ("--command-config",), properties: Sequence[str] = ()
) -> None:
    """Those of Apache Kafka's own tools, whose names for one thing changed over time; `-X` and the profile are ours."""
    group = parser.add_argument_group("connection")
    _add_servers(group)
    _add_settings(group, files=files, properties=("-X", *properties))
    parser.set_defaults(timeout=None)


def _add_servers(group: ArgumentGroup) -> None:
    group.add_argument(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT",
        help=f"where the cluster is (default: --command-config, {BOOTSTRAP_VARIABLE}, the profile,"
        f" or {DEFAULT_BOOTSTRAP_SERVERS})",
    )
    group.add_argument("--profile", metavar=PROFILE, help="settings of a cluster by name; see: moldau profile --help")


def _add_settings(group: ArgumentGroup, *, files: Sequence[str], properties: Sequence[str]) -> None:
    group.add_argument(
        *files, dest="command_config", metavar="FILE", help="client properties, of librdkafka or of Java's clients"
    )
    group.add_argument(
        *properties,
        dest="properties",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one client property; may be repeated",
    )


def client_settings(options: Namespace) -> dict[str, str]:
    """The properties of a client, by librdkafka's names, without those that only a tool can know.

    Whatever asks the options for the servers afterwards hears of those that the client has.
    """
    from moldau.cli.java_settings import for_librdkafka
    from moldau.cli.profiles import BOOTSTRAP_SERVER, of_process

    known = of_process(options.profile)
    given = {name: value for name, value in given_properties(options).items() if not is_of_registry(name)}
    usual = {
        "bootstrap.servers": known.value(BOOTSTRAP_SERVER) or DEFAULT_BOOTSTRAP_SERVERS,
        "client.id": CLIENT_ID,
    }
    config = usual | for_librdkafka(given)
    check_servers(config["bootstrap.servers"])
    options.bootstrap_server = config["bootstrap.servers"]
    return config


def given_properties(options: Namespace) -> dict[str, str]:
    """Of the profile, the file and the command line, by the names that they were given."""
    from moldau.cli.profiles import COMMAND_CONFIG, of_process

    known = of_process(options.profile)
    given = dict(known.client)
    file = options.command_config or known.value(COMMAND_CONFIG)
    if file:
        given |= read_properties(file)
    if options.bootstrap_server is not None:
        given["bootstrap.servers"] = options.bootstrap_server
    return given | dict(split_pair(pair, option="-X") for pair in options.properties)


def is_of_registry(name: str) -> bool:
    return name.startswith(REGISTRY_PREFIXES) or name in SERIALIZER_PROPERTIES


def check_servers(servers: str) -> None:
    from moldau.client.addresses import addresses_of

    try:
        found = addresses_of(servers)
    except ValueError as wrong:
        raise UsageError(f"--bootstrap-server: {wrong}") from None
    if not found:  # as of a variable that is not set: what was meant is not the usual cluster
        raise UsageError("--bootstrap-server: it names no broker; expected HOST:PORT")


def nobody_listens(servers: str) -> CommandFailed:
    return CommandFailed(f"no broker answers at {servers}; start one with: moldau start")


def read_properties(path: str) -> dict[str, str]:
    import re

    try:
        with open(path, encoding="utf-8") as file:
            # A backslash at the end of a line goes on in the next, as in Java's files.
            lines = [line.strip() for line in re.sub(_CONTINUED, "", file.read()).splitlines()]
    except OSError as wrong:
        raise UsageError(f"cannot read {path}: {wrong.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {path}: it is no text in UTF-8") from None
    pairs = [split_pair(line, option=path) for line in lines if line and not line.startswith(("#", "!"))]
    return {key: re.sub(_ESCAPE, _unescaped, value) for key, value in pairs}


def _unescaped(escape: re.Match[str]) -> str:
    """As Java reads its files: any other character behind a backslash stands for itself."""
    if escape[2]:
        return chr(int(escape[2], 16))
    return _CONTROL.get(escape[1], escape[1])


def split_pair(text: str, *, option: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{option}: expected KEY=VALUE, not {named(text)}")
    return key.strip(), value.strip()


def named(text: str) -> str:
    """The key of what is no KEY=VALUE: what follows another separator may be a password, and errors are logged."""
    name, *more = text.strip().replace(":", " ").split(" ", 1)
    return f"{name!r} and more" if more else repr(text)
