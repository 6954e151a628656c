"""The registry's settings: a file with the keys of Confluent's registry, and what the command line says instead."""

from __future__ import annotations

import socket
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.cli.connection import client_settings, read_properties
from moldau.cli.failures import UsageError, meant
from moldau.cli.lending import check_passthrough, has_login, lends
from moldau.registry.service import Settings
from moldau.security.tls.settings import PEM, TlsSettings
from moldau.web.listening import ANY, InvalidListener, Listener, parse_listeners
from moldau.web.logins import InvalidUsers, User, read_users

PORT, HOST = 8081, "127.0.0.1"
STORE = "kafkastore."
LEVELS = {
    "none", "backward", "backward_transitive", "forward", "forward_transitive", "full", "full_transitive",
}  # fmt: skip
OWN = {
    "listeners", "host.name", "host.port", "port", "inter.instance.protocol", "inter.instance.listener.name",
    "kafkastore.topic", "kafkastore.topic.replication.factor", "kafkastore.timeout.ms", "kafkastore.init.timeout.ms",
    "schema.registry.group.id", "kafkastore.group.id", "schema.compatibility.level", "avro.compatibility.level",
    "mode.mutability", "leader.eligibility", "master.eligibility", "leader.session.timeout.ms", "authentication.method",
    "authentication.users.file", "authentication.realm", "authentication.roles",
    "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type", "ssl.key.password",
    "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type", "ssl.client.authentication",
    "ssl.client.auth",
}  # fmt: skip
GUARDING = ("ssl.", "authentication.", "confluent.schema.registry.auth", "resource.extension.class")
"""What protects something is refused if it is not known; anything else is passed over with a line."""


@dataclass(frozen=True, slots=True)
class Wanted:
    listeners: tuple[Listener, ...]
    host: str
    """Where other instances find this one."""
    port: int | None
    scheme: str
    may_lead: bool
    replicas: int
    registry: Settings
    client: Mapping[str, str]
    timeout_s: float
    users: Mapping[str, User] | None
    is_passthrough: bool
    """Users of the cluster come in."""
    tls: TlsSettings | None


def settled(options: Namespace) -> Wanted:
    file = read_properties(options.config) if options.config else {}
    _check_keys(file, options.config)
    store = {
        name.removeprefix(STORE): each for name, each in file.items() if name.startswith(STORE) and name not in OWN
    }
    pairs = [f"{name}={each}" for name, each in store.items() if name != "bootstrap.servers"]
    options.properties = ["client.id=moldau-registry", *pairs, *options.properties]
    options.bootstrap_server = options.bootstrap_server or store.get("bootstrap.servers")
    client = client_settings(options)
    tls = _tls(options, file)
    listeners = _listeners(options, file, is_tls=tls is not None)
    if tls is None and any(each.is_tls for each in listeners):
        raise UsageError("a listener for https needs --tls-certificate and --tls-key, or ssl.keystore.location")
    told = _chosen(listeners, file.get("inter.instance.protocol"))
    method, users = _method(options, file), _users(options, file)
    is_guarded = tls is not None and tls.client_auth == "required" and all(each.is_tls for each in listeners)
    if not (method or users is not None or is_guarded) and has_login(client):
        raise lends("registry")
    if method == "PASSTHROUGH":
        check_passthrough(client)
    return Wanted(
        listeners=listeners,
        host=file.get("host.name") or (socket.gethostname() if told.host in ANY else told.host),
        port=_number(file, "host.port") if "host.port" in file else None,
        scheme=told.scheme,
        may_lead=_flag(file, "leader.eligibility", default=_flag(file, "master.eligibility", default=True)),
        replicas=_number(file, "kafkastore.topic.replication.factor", 3),
        registry=_registry(options, file),
        client=client,
        timeout_s=float(options.timeout),
        users=users,
        is_passthrough=method == "PASSTHROUGH",
        tls=tls,
    )


def _check_keys(file: Mapping[str, str], path: str) -> None:
    for name in file:
        if name in OWN or name.startswith(STORE):
            continue
        if name.startswith(GUARDING):
            raise UsageError(f"{path}: {name} is not supported{meant(name, OWN)}")
        print(f"moldau registry: {path}: {name} has no effect{meant(name, OWN)}", file=sys.stderr)


def _registry(options: Namespace, file: Mapping[str, str]) -> Settings:
    level = file.get("schema.compatibility.level") or file.get("avro.compatibility.level") or "backward"
    if level.lower() not in LEVELS:
        raise UsageError(f"{options.config}: schema.compatibility.level={level}: expected one of {', '.join(LEVELS)}")
    session_ms = _number(file, "leader.session.timeout.ms", Settings().session_ms)
    return Settings(
        session_ms=session_ms,
        heartbeat_ms=session_ms * 3 // 10,
        topic=options.topic or file.get("kafkastore.topic") or Settings().topic,
        group=file.get("schema.registry.group.id") or Settings().group,
        default_level=level.upper(),
        may_change_modes=_flag(file, "mode.mutability", default=True),
        timeout_s=_number(file, "kafkastore.timeout.ms", 10_000) / 1_000,
    )


def _listeners(options: Namespace, file: Mapping[str, str], *, is_tls: bool) -> tuple[Listener, ...]:
    said = file.get("listeners")
    try:
        if said and options.port is None and options.host is None:
            return tuple(parse_listeners(said))
    except InvalidListener as wrong:
        raise UsageError(f"{options.config}: listeners: {wrong}") from None
    chosen = options.port if options.port is not None else _number(file, "port", PORT)
    return (Listener("https" if is_tls else "http", (options.host or HOST).strip("[]"), chosen),)


def _chosen(listeners: tuple[Listener, ...], scheme: str | None) -> Listener:
    found = [each for each in listeners if scheme is None or each.scheme == scheme.lower()]
    if not found:
        raise UsageError(f"inter.instance.protocol={scheme}: no listener has it")
    return found[0]


def _method(options: Namespace, file: Mapping[str, str]) -> str:
    """Empty if nobody said it."""
    said: str | None = options.authentication
    method = (file.get("authentication.method", "") if said is None else said).upper()
    where = f"authentication.method={method}" if said is None else f"--authentication {said}"
    if method not in {"", "NONE", "BASIC", "PASSTHROUGH"}:
        raise UsageError(f"{where} is not supported; expected NONE, BASIC or PASSTHROUGH")
    return method


def _users(options: Namespace, file: Mapping[str, str]) -> Mapping[str, User] | None:
    method = _method(options, file)
    if method == "PASSTHROUGH" or (options.authentication is not None and method == "NONE"):
        if options.users is not None:
            whom = "everybody" if method == "NONE" else "the cluster's users"
            raise UsageError(f"--authentication {method.lower()} lets {whom} in, and --users does not: say one of them")
        return None
    path = options.users or file.get("authentication.users.file")
    if path is None:
        if method == "BASIC":
            raise UsageError("authentication.method=BASIC needs --users, or authentication.users.file")
        return None
    try:
        return read_users(_text(path))
    except InvalidUsers as wrong:
        raise UsageError(f"{path}: {wrong}") from None


def _tls(options: Namespace, file: Mapping[str, str]) -> TlsSettings | None:
    if options.tls_certificate or options.tls_key:
        if not (options.tls_certificate and options.tls_key):
            raise UsageError("--tls-certificate and --tls-key are needed both")
        keys = {name: each for name, each in file.items() if name.startswith("ssl.truststore.")}
        if options.tls_client_ca is not None:
            keys = {"ssl.truststore.type": PEM, "ssl.truststore.certificates": _text(options.tls_client_ca)}
        own = {
            "ssl.keystore.type": PEM,
            "ssl.keystore.certificate.chain": _text(options.tls_certificate),
            "ssl.keystore.key": _text(options.tls_key),
            "ssl.client.auth": "none" if options.tls_client_ca is None else "required",
        }
        return TlsSettings.from_keys({**keys, **own})
    if "ssl.keystore.location" not in file:
        return None
    keys = {name: each for name, each in file.items() if name.startswith("ssl.") and not name.startswith("ssl.client")}
    required = _flag(file, "ssl.client.auth", default=False)
    said = file.get("ssl.client.authentication", "REQUIRED" if required else "NONE").lower()
    if said not in {"none", "requested", "required"}:
        raise UsageError(f"ssl.client.authentication={said}: expected NONE, REQUESTED or REQUIRED")
    return TlsSettings.from_keys({**keys, "ssl.client.auth": said})


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as found:
            return found.read()
    except (OSError, UnicodeDecodeError) as wrong:
        raise UsageError(f"cannot read {path}: {getattr(wrong, 'strerror', None) or 'no text in UTF-8'}") from None


def _number(file: Mapping[str, str], name: str, default: int = 0) -> int:
    value = file.get(name)
    if value is not None and not value.isdecimal():
        raise UsageError(f"{name}={value}: expected a number")
    return default if value is None else int(value)


def _flag(file: Mapping[str, str], name: str, *, default: bool) -> bool:
    return default if name not in file else file[name].lower() == "true"
