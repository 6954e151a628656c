"""What the proxy is set up with: kafka-rest.properties' keys, and what the command line says instead."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.cli.connection import client_settings, read_properties
from moldau.cli.failures import UsageError
from moldau.cli.java_settings import for_librdkafka
from moldau.cli.lending import check_passthrough, has_login, lends

if TYPE_CHECKING:
    from moldau.rest.settings import RestSettings

CLIENT_ID = "moldau-rest"
DEFAULT_LISTENERS = "http://127.0.0.1:8082"
LISTENERS, USERS, METHOD = "listeners", "authentication.users.file", "authentication.method"
REGISTRY_URL, REGISTRY = "schema.registry.url", "schema.registry."
PREFIXES = ("client.", "producer.", "consumer.", "admin.", REGISTRY)

# Of Java's clients, and without a counterpart in librdkafka: what they are about is the proxy's own affair.
JAVA_ONLY = {
    "max.poll.records", "key.serializer", "value.serializer", "key.deserializer", "value.deserializer",
    "buffer.memory", "max.block.ms", "interceptor.classes", "metric.reporters", "ssl.provider",
    "timeout.ms", "init.timeout.ms", "threads",
}  # fmt: skip


def whole(least: int, most: int) -> Callable[[str, str], int]:
    def read(key: str, text: str) -> int:
        if not text.lstrip("-").isdecimal() or not least <= int(text) <= most:
            raise UsageError(f"{key}={text}: expected a number from {least} to {most}")
        return int(text)

    return read


def truth(key: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UsageError(f"{key}={text}: expected true or false")
    return text.lower() == "true"


def words(_key: str, text: str) -> str:
    return text


def positive(most: int) -> Callable[[str, str], int]:
    return whole(1, most)


INT, LONG = (1 << 31) - 1, (1 << 62) - 1
KEYS: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "id": ("id", words),
    "confluent.resource.name.authority": ("resource_name_authority", words),
    "api.v2.enable": ("is_v2", truth),
    "api.v3.enable": ("is_v3", truth),
    "consumer.request.timeout.ms": ("request_timeout_ms", positive(INT)),
    "consumer.request.max.bytes": ("request_bytes_max", positive(LONG)),
    "consumer.instance.timeout.ms": ("instance_timeout_ms", positive(INT)),
    "consumer.instances.max": ("instances_max", positive(100_000)),
    "consumer.instances.per.user.max": ("instances_per_user_max", positive(100_000)),
    "consumer.threads": ("consumer_threads", positive(1_000)),
    "consumer.prefetch.max.kbytes": ("prefetch_kbytes_max", positive(INT)),
    "fetch.min.bytes": ("fetch_min_bytes", whole(-1, 10_000_000)),
    "api.v3.produce.batch.maximum.entries": ("batch_entries_max", positive(100_000)),
    "api.v3.produce.request.size.limit.max.bytes": ("value_bytes_max", positive(INT)),
    "streaming.connection.max.duration.ms": ("stream_ms_max", positive(LONG)),
    "streams.max": ("streams_max", positive(10_000)),
    "streams.per.user.max": ("streams_per_user_max", positive(10_000)),
    "streams.prefetch.max.kbytes": ("stream_prefetch_kbytes_max", positive(INT)),
    "streams.heartbeat.ms": ("heartbeat_ms", positive(INT)),
    "sessions.max": ("sessions_max", positive(100_000)),
}
# Of Confluent's proxy, without a meaning here: its threads and pools, and what belongs to other products.
IGNORED = (
    "zookeeper.connect", "host.name", "port", "debug", "simpleconsumer.", "producer.threads", "metrics.", "metric.",
    "consumer.iterator.", "consumer.max.poll.records", "max.poll.records", "rate.limit.", "api.v3.produce.rate.limit",
    "api.v3.produce.response.thread.pool.size", "streaming.connection.max.duration.grace.period.ms",
    "kafka.rest.resource.extension.class", "thread.pool.", "request.queue.capacity", "idle.timeout.ms",
    "authentication.realm", "authentication.roles", "shutdown.graceful.ms", "use.custom.request.logging",
    "null.request.body.always.publishes.empty.record", "access.control.", "confluent.", "response.",
)  # fmt: skip
OWN = (LISTENERS, USERS, METHOD, "bootstrap.servers", "advertised.listeners", "request.body.max.bytes")


@dataclass(frozen=True, slots=True)
class Settled:
    settings: RestSettings
    listeners: str
    users_file: str | None
    tls: Mapping[str, str]
    body_bytes_max: int


def settled(options: Namespace) -> Settled:
    from moldau.rest.settings import Authentication, RestSettings

    given = read_properties(options.config) if options.config else {}
    check_keys(given, options.config)
    client = _client(given, options)
    found: dict[str, Any] = {name: read(key, given[key]) for key, (name, read) in KEYS.items() if key in given}
    method = options.authentication or given.get(METHOD)
    users_file = options.users or given.get(USERS)
    try:
        authentication = Authentication((method or ("BASIC" if users_file else "NONE")).upper())
    except ValueError:
        raise UsageError(f"authentication {method!r}: expected one of {', '.join(Authentication)}") from None
    _check_logins(authentication, client, users_file, is_said=method is not None)
    advertised = given.get("advertised.listeners")
    settings = RestSettings(
        client=client,
        producer=_of_kind(given, "producer."),
        consumer=_of_kind(given, "consumer."),
        registry_url=options.registry or given.get(REGISTRY_URL),
        registry=_registry(given),
        authentication=authentication,
        timeout_s=options.timeout,
        advertised_url=None if advertised is None else advertised.split(",")[0].strip(),
        **found,
    )
    tls = {key: value for key, value in given.items() if key.startswith("ssl.")}
    body_bytes_max = positive(INT)("request.body.max.bytes", given.get("request.body.max.bytes", str(20 << 20)))
    return Settled(settings, _listeners(given, options), users_file, tls, body_bytes_max)


def check_keys(given: Mapping[str, str], path: str | None) -> None:
    known = (*KEYS, *OWN, REGISTRY_URL)
    for key in given:
        if key not in known and not key.startswith((*PREFIXES, *IGNORED, "ssl.")):
            raise UsageError(f"{path}: unknown key {key!r}")


def _client(given: Mapping[str, str], options: Namespace) -> dict[str, str]:
    """What other tools would take, and the file's `client.` keys between profile and command line."""
    own = _of_kind(given, "client.")
    servers = given.get("bootstrap.servers")
    if servers is not None:
        own["bootstrap.servers"] = ",".join(each.rpartition("://")[2].strip() for each in servers.split(","))
    if options.bootstrap_server:
        own.pop("bootstrap.servers", None)
    pairs = [f"{name}={value}" for name, value in {"client.id": CLIENT_ID, **own}.items()]
    return client_settings(Namespace(**{**vars(options), "properties": [*pairs, *options.properties]}))


def _of_kind(given: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Those of a client, without the prefix: others of the same beginning are the proxy's own."""
    found = {
        key.removeprefix(prefix): value
        for key, value in given.items()
        if key.startswith(prefix) and key not in KEYS and not key.startswith(IGNORED)
    }
    return for_librdkafka({key: value for key, value in found.items() if key not in JAVA_ONLY})


def _registry(given: Mapping[str, str]) -> dict[str, str]:
    """With the prefix: so the clients of a registry have them in Confluent's files."""
    return {key: value for key, value in given.items() if key.startswith(REGISTRY) and key != REGISTRY_URL}


def _listeners(given: Mapping[str, str], options: Namespace) -> str:
    if options.host is None and options.port is None:
        return given.get(LISTENERS, DEFAULT_LISTENERS)
    host = options.host or "127.0.0.1"
    scheme = "https" if given.get("ssl.keystore.location") else "http"
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{8082 if options.port is None else options.port}"


def _check_logins(method: str, client: Mapping[str, str], users_file: str | None, *, is_said: bool) -> None:
    if method == "BASIC" and users_file is None:
        raise UsageError("--authentication basic: who may come in? Name a file of users: --users FILE")
    if method == "PASSTHROUGH":
        check_passthrough(client)
    if method == "NONE" and not is_said and has_login(client):
        raise lends("proxy")
