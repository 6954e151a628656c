"""`moldau start --secure`: the settings of a broker whose certificates and first users make themselves."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigConflict
from moldau.core.config.listener_security import TLS_STORE_KEYS
from moldau.core.config.settings import is_for_listener, subject
from moldau.node.securing.first_users import StandingUser
from moldau.security.jaas import SCRAM_MODULE, jaas_config_key, login_line
from moldau.security.starter.clients import MECHANISM, PROTOCOL, Login, properties_text, python_text
from moldau.security.starter.files import (
    ADMIN,
    BROKER,
    EVERYWHERE,
    FOLDER,
    StarterFiles,
    UnusableFolder,
    prepared,
    write,
)
from moldau.security.tls.certificates import InvalidRequest

OPTION = "--secure"
SUPER_USERS = "super.users"
BETWEEN_BROKERS = "security.inter.broker.protocol"
CLIENT_PROPERTIES, LIBRDKAFKA_PROPERTIES, PYTHON_CODE = "client.properties", "librdkafka.properties", "client.py"
HIDDEN = "(it is in the file)"
# A user may add mechanisms and super users, and choose among listeners that are all as protected.
_USERS_OWN = ("listeners", "sasl.enabled.mechanisms", SUPER_USERS)
_OURS_ALONE = ("allow.everyone.if.no.acl.found", BETWEEN_BROKERS, "inter.broker.listener.name")


def settings(files: StarterFiles, *, broker_password: str) -> dict[str, str]:
    """By Kafka's keys, beside `listeners`."""
    login = login_line(SCRAM_MODULE, user=BROKER, password=broker_password)
    return {
        BETWEEN_BROKERS: PROTOCOL,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.authority),
        "sasl.enabled.mechanisms": f"SCRAM-SHA-256,{MECHANISM}",
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        jaas_config_key(PROTOCOL, MECHANISM): login,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        SUPER_USERS: f"User:{ADMIN};User:{BROKER}",
    }


def placeholders() -> dict[str, str]:
    """The same before anybody knows where the data is, so that a configuration can be read at all.

    Without the listener of brokers: listeners that lack it are refused in words of ours.
    """
    found = settings(StarterFiles(Path(FOLDER)), broker_password="-")
    del found[BETWEEN_BROKERS]
    return found


def secured(config: BrokerConfig, options: Namespace) -> BrokerConfig:
    """With what is in the folder, which is made if need be. ConfigError where the configuration opens a way around."""
    refuse_ways_around(config)
    if options.secured_by is not None:
        files = StarterFiles(options.secured_by)
    else:
        hosts = [each.host for each in (*config.listeners, *config.advertised_listeners)]
        now = datetime.fromtimestamp(SystemClock().now_ms() // 1_000, UTC)
        folder = Path(config.log_dirs[0]) / FOLDER
        try:
            files = prepared(folder, hosts=hosts, now=now)
        except InvalidRequest as wrong:
            raise ConfigConflict(OPTION, None, f"{OPTION}: {folder}: {wrong}") from None
        except UnusableFolder as wrong:
            raise ConfigConflict(OPTION, None, f"{OPTION}: {wrong}") from None
        options.secured_by = files.folder
    given = config.layers.static
    wanted = settings(files, broker_password=files.password(BROKER))
    wanted |= {key: given[key] for key in _USERS_OWN if key in given}
    own = given.get(SUPER_USERS, "").split(";")
    wanted[SUPER_USERS] = ";".join(dict.fromkeys(filter(None, [f"User:{ADMIN}", f"User:{BROKER}", *own])))
    return BrokerConfig.of({**given, **wanted})


def refuse_ways_around(config: BrokerConfig) -> None:
    given, ours = config.layers.static, placeholders()
    for listener in config.listeners:
        if (listener.name, listener.security) != (PROTOCOL, PROTOCOL):
            message = f"{OPTION} listens with {PROTOCOL} alone, and listeners has {listener}; leave out one of them"
            raise ConfigConflict("listeners", str(listener), message)
    for key in (*ours, *_OURS_ALONE):
        if key not in _USERS_OWN and given.get(key) != ours.get(key):
            raise ConfigConflict(key, None, f"{OPTION} decides about {key}; leave out one of them")
    decided = {*ours, *_OURS_ALONE} - {*_USERS_OWN}
    for key in given.keys() - ours.keys():
        found = subject(key)
        if found in TLS_STORE_KEYS or (found in decided and is_for_listener(key)):
            raise ConfigConflict(key, None, f"{OPTION} decides about {found}; leave out {key}, or {OPTION}")


def standing_users(folder: Path) -> list[StandingUser]:
    """Who is in the cluster from its beginning on, or from the first start with --secure."""
    files = StarterFiles(folder)
    return [
        StandingUser(
            user,
            files.password(user),
            files.password_file(user),
            is_new=not files.taken_file(user).exists(),
            is_ours=user == BROKER,
            on_taken=partial(files.has_taken, user),
        )
        for user in (ADMIN, BROKER)
    ]


def bootstrap_servers(addresses: Iterable[tuple[str, int]]) -> str:
    return ",".join(_reached(*each) for each in addresses)


def _reached(host: str, port: int) -> str:
    name = "localhost" if host in EVERYWHERE else host
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def write_client_files(folder: Path, servers: str) -> str:
    """The settings of clients as files that only their owner reads; what to tell the user about them."""
    files = StarterFiles(folder)
    login = Login(ADMIN, files.password(ADMIN), files.authority)
    for name, text in _texts(login, servers).items():
        write(folder / name, text.encode())
    # Whoever reads standard output from somewhere else may keep it, as containers do.
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    shown = _texts(login if is_terminal else Login(ADMIN, HIDDEN, files.authority), servers)
    return told(folder, shown)


def _texts(login: Login, servers: str) -> dict[str, str]:
    return {
        CLIENT_PROPERTIES: properties_text(login.java(servers)),
        LIBRDKAFKA_PROPERTIES: properties_text(login.librdkafka(servers)),
        PYTHON_CODE: python_text(login.python(servers)),
    }


def told(folder: Path, texts: Mapping[str, str]) -> str:
    whose = {
        CLIENT_PROPERTIES: "Java, and --command-config of Kafka's tools and Moldau's",
        LIBRDKAFKA_PROPERTIES: "librdkafka, confluent-kafka",
        PYTHON_CODE: "Python (kafka-python)",
    }
    sections = [f"\n# {whose[name]}: {folder / name}\n{text}" for name, text in texts.items()]
    first = f"  security   TLS, logins with {MECHANISM}, and User:{ADMIN} may do everything; the files are in {folder}"
    last = f"\ntry it:  moldau topics list --command-config {folder / CLIENT_PROPERTIES}"
    return "\n".join([first, *sections]) + last
