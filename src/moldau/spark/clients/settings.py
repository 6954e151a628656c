"""`kafka.*` options as librdkafka's settings: Java's names translated, and those refused that would break a query."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from moldau.client.security import ClientSettings
from moldau.spark.clients.java_settings import REFUSED, WITHOUT_EFFECT, refusal_of
from moldau.spark.option_values import OptionError, OptionValues, wrong_option
from moldau.spark.secrets import HIDDEN, is_secret

Translation: TypeAlias = Callable[[str, Mapping[str, str]], Mapping[str, str]]

LOGGER = logging.getLogger(__name__)

PREFIX = "kafka."
BOOTSTRAP = "kafka.bootstrap.servers"

RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "max.request.size": "message.max.bytes",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.truststore.location": "ssl.ca.location",
    "sasl.oauthbearer.assertion.template.file": "sasl.oauthbearer.assertion.jwt.template.file",
}
IDENTIFICATION = "ssl.endpoint.identification.algorithm"
KINIT_ARGUMENTS = '-t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal}'
CONSUMER_ONLY = {
    "fetch.min.bytes", "fetch.max.bytes", "fetch.max.wait.ms", "max.partition.fetch.bytes", "isolation.level",
    "check.crcs", "group.id", "client.rack",
}  # fmt: skip
PRODUCER_ONLY = {
    "acks", "batch.size", "linger.ms", "buffer.memory", "compression.type", "delivery.timeout.ms", "retries",
    "enable.idempotence", "max.in.flight.requests.per.connection", "max.request.size", "transaction.timeout.ms",
    "partitioner", "partitioner.ignore.keys", "compression.gzip.level", "compression.lz4.level",
    "compression.zstd.level",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a question about offsets is asked again, and how long after; None leaves it to this package."""

    retries_max: int | None = None
    pause_s: float | None = None


USUAL_PATIENCE = Patience()


def client_settings(values: OptionValues, *, side: str) -> ClientSettings:
    """The settings of a consumer or a producer (`side`) as the user gave them."""
    if not values.text(BOOTSTRAP):
        raise OptionError(f"option {BOOTSTRAP} is missing: allowed is HOST:PORT, or several with commas between")
    given = {name.removeprefix(PREFIX): value for name, value in values.by_name.items() if name.startswith(PREFIX)}
    # One option map often serves both ends of a job, and a client refuses what belongs to the other kind.
    others = PRODUCER_ONLY if side == "consumer" else CONSUMER_ONLY
    settings: dict[str, str] = {}
    for name, value in given.items():
        refusal = refusal_of(name, value)
        if refusal:
            raise wrong_option(PREFIX + name, value, f"it cannot be set: {refusal}")
        if name in WITHOUT_EFFECT:
            _tell_without_effect(name, value)
        elif name not in others and name not in REFUSED:
            settings.update(_translated(name, value, given, side=side))
    return tuple(sorted(settings.items()))


@lru_cache(maxsize=256)
def _tell_without_effect(name: str, value: str) -> None:
    """Once for each: options are parsed again for every query."""
    shown = HIDDEN if is_secret(name) else value
    LOGGER.warning("option %s = %r has no effect: %s", PREFIX + name, shown, WITHOUT_EFFECT[name])


def _translated(name: str, value: str, given: Mapping[str, str], *, side: str) -> Mapping[str, str]:
    translate = TRANSLATIONS.get(name)
    if translate is not None:
        return translate(value, given)
    if name == "request.timeout.ms" and side == "consumer":
        return {"socket.timeout.ms": value}
    return {RENAMED.get(name, name): value}


def _level_of(codec: str) -> Translation:
    """Java has a level for each codec, librdkafka one for the codec that is used."""
    return lambda value, given: {"compression.level": value} if given.get("compression.type", "") == codec else {}


def _keystore(location: str, given: Mapping[str, str]) -> Mapping[str, str]:
    if given.get("ssl.keystore.type", "").lower() != "pem":
        return {"ssl.keystore.location": location}
    return {"ssl.certificate.location": location, "ssl.key.location": location}


def _kinit(command: str, _given: Mapping[str, str]) -> Mapping[str, str]:
    """Java names a program, librdkafka the whole command."""
    return {"sasl.kerberos.kinit.cmd": command if " " in command else f"{command} {KINIT_ARGUMENTS}"}


def _random_partitions(value: str, _given: Mapping[str, str]) -> Mapping[str, str]:
    if value.lower() not in ("true", "false"):
        raise wrong_option(f"{PREFIX}partitioner.ignore.keys", value, "allowed are true and false")
    return {"partitioner": "random"} if value.lower() == "true" else {}


def _credentials(jaas: str) -> dict[str, str]:
    if re.search(r'\btokenauth\s*=\s*"?true', jaas, re.IGNORECASE):
        raise OptionError("option kafka.sasl.jaas.config: librdkafka logs in by no delegation token (tokenauth)")
    found = dict(re.findall(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"', jaas))
    if set(found) != {"username", "password"}:
        # The value is a secret and stays out of the message.
        raise OptionError(
            'option kafka.sasl.jaas.config: expected username="…" and password="…", as PLAIN and SCRAM have them; '
            "for other mechanisms give librdkafka's own settings, for example kafka.sasl.oauthbearer.config"
        )
    return {f"sasl.{key}": re.sub(r"\\(.)", r"\1", value) for key, value in found.items()}


TRANSLATIONS: Mapping[str, Translation] = {
    "sasl.jaas.config": lambda value, _: _credentials(value),
    IDENTIFICATION: lambda value, _: {IDENTIFICATION: value or "none"},
    "buffer.memory": lambda value, _: {
        "queue.buffering.max.kbytes": str(max(1, _whole("buffer.memory", value) // 1024))
    },
    "compression.gzip.level": _level_of("gzip"),
    "compression.lz4.level": _level_of("lz4"),
    "compression.zstd.level": _level_of("zstd"),
    "ssl.keystore.location": _keystore,
    "sasl.kerberos.kinit.cmd": _kinit,
    "partitioner.ignore.keys": _random_partitions,
}


def _whole(name: str, value: str) -> int:
    if not value.strip().isdigit():
        raise wrong_option(PREFIX + name, value, "allowed is a whole number")
    return int(value)
