"""`kafka.*` options as librdkafka's settings: Java's names translated, and those refused that would break a query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from moldau.spark.option_values import OptionError, OptionValues, wrong_option

# Pairs in order instead of a dictionary: clients are cached by them.
ClientSettings: TypeAlias = tuple[tuple[str, str], ...]

PREFIX = "kafka."
BOOTSTRAP = "kafka.bootstrap.servers"

REFUSED = {
    "key.deserializer": "keys are read as bytes; use keyFormat, or decode them with frame operations",
    "value.deserializer": "values are read as bytes; use valueFormat, or decode them with frame operations",
    "key.serializer": "keys are written as bytes; use keyFormat, or encode them with frame operations",
    "value.serializer": "values are written as bytes; use valueFormat, or encode them with frame operations",
    "auto.offset.reset": "where a query begins is said by startingOffsets",
    "enable.auto.commit": "offsets are committed when Spark has finished a batch",
    "enable.auto.offset.store": "offsets are committed when Spark has finished a batch",
    "interceptor.classes": "there are no interceptors, and they could change what is read",
    "transactional.id": "the sink makes transactional ids of the query and the task; see the option delivery",
    "partition.assignment.strategy": "Spark assigns partitions to tasks",
    "ssl.keystore.type=jks": "a JKS store cannot be read; convert it: keytool -importkeystore -deststoretype pkcs12",
    "ssl.truststore.type=jks": "a JKS store cannot be read; export its certificates as PEM and set "
    "kafka.ssl.truststore.type=PEM",
}
RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "max.request.size": "message.max.bytes",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.truststore.location": "ssl.ca.location",
    "sasl.oauthbearer.token.endpoint.url": "sasl.oauthbearer.token.endpoint.url",
}
# What only the Java client has, and what makes no difference to what is read or written.
WITHOUT_MEANING = {
    "max.poll.records", "default.api.timeout.ms", "max.block.ms", "exclude.internal.topics", "metric.reporters",
    "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms", "security.providers",
    "auto.include.jmx.reporter", "enable.metrics.push", "ssl.protocol", "ssl.provider", "ssl.enabled.protocols",
    "ssl.truststore.type", "ssl.truststore.password", "ssl.keystore.type", "partitioner.class",
    "partitioner.ignore.keys", "partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms",
    "sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class",
}  # fmt: skip
CONSUMER_ONLY = {
    "fetch.min.bytes", "fetch.max.bytes", "fetch.max.wait.ms", "max.partition.fetch.bytes", "isolation.level",
    "check.crcs", "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms", "group.instance.id",
    "group.id", "group.protocol", "client.rack", "allow.auto.create.topics",
}  # fmt: skip
PRODUCER_ONLY = {
    "acks", "batch.size", "linger.ms", "buffer.memory", "compression.type", "delivery.timeout.ms", "retries",
    "enable.idempotence", "max.in.flight.requests.per.connection", "max.request.size", "transaction.timeout.ms",
}  # fmt: skip


def client_settings(values: OptionValues, *, side: str) -> ClientSettings:
    """The settings of a consumer or a producer (`side`) as the user gave them."""
    if not values.text(BOOTSTRAP):
        raise OptionError(f"option {BOOTSTRAP} is missing: allowed is HOST:PORT, or several with commas between")
    given = {name.removeprefix(PREFIX): value for name, value in values.by_name.items() if name.startswith(PREFIX)}
    # One option map often serves both ends of a job, and a client refuses what belongs to the other kind.
    others = PRODUCER_ONLY if side == "consumer" else CONSUMER_ONLY
    settings: dict[str, str] = {}
    for name, value in given.items():
        refusal = REFUSED.get(name) or REFUSED.get(f"{name}={value.lower()}")
        if refusal:
            raise wrong_option(PREFIX + name, value, f"it cannot be set: {refusal}")
        if name not in WITHOUT_MEANING and name not in others:
            settings.update(_translated(name, value, side=side))
    return tuple(sorted(settings.items()))


def _translated(name: str, value: str, *, side: str) -> Mapping[str, str]:
    if name == "sasl.jaas.config":
        return _credentials(value)
    if name == "ssl.endpoint.identification.algorithm":
        return {name: value or "none"}
    if name == "request.timeout.ms" and side == "consumer":
        return {"socket.timeout.ms": value}
    if name == "buffer.memory":
        return {"queue.buffering.max.kbytes": str(max(1, _whole(name, value) // 1024))}
    return {RENAMED.get(name, name): value}


def _credentials(jaas: str) -> dict[str, str]:
    found = dict(re.findall(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"', jaas))
    if set(found) != {"username", "password"}:
        # The value is a secret and stays out of the message.
        raise OptionError(
            'option kafka.sasl.jaas.config: expected username="…" and password="…", as PLAIN and SCRAM have them; '
            "for other mechanisms give librdkafka's own settings, for example kafka.sasl.oauthbearer.config"
        )
    return {f"sasl.{key}": re.sub(r"\\(.)", r"\1", value) for key, value in found.items()}


def _whole(name: str, value: str) -> int:
    if not value.strip().isdigit():
        raise wrong_option(PREFIX + name, value, "allowed is a whole number")
    return int(value)
