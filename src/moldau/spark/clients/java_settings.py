"""Settings of Java's clients that librdkafka lacks: each has no effect, which is said, or is refused.

The question for each is: would its author be harmed if it did nothing? What only tunes the Java client may stay in an
option map that was written for it. What protects something, or decides what is read or written, may not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NO_MEMBERS = "Spark assigns partitions to tasks, and the group that offsets are committed to has no members"
JAVA_METRICS = "there is no JMX here; lag is seen by the group that offsets are committed to"
OWN_REFRESH = "librdkafka renews logins by rules of its own"
BROKERS_CHECK = "tokens are checked by the brokers"
OPENSSL = "TLS is OpenSSL's here"
A_CLASS = "a class of Java cannot run here"
OWN_TIMES = "the cluster is waited for 30 s; for offsets see the options fetchOffset.numRetries and .retryIntervalMs"

# No effect, which is told with this reason.
WITHOUT_EFFECT = {
    "allow.auto.create.topics": "topics that are read are never made",
    "auto.commit.interval.ms": "offsets are committed when Spark has finished a batch",
    "auto.include.jmx.reporter": JAVA_METRICS,
    "default.api.timeout.ms": OWN_TIMES,
    "group.instance.id": NO_MEMBERS,
    "group.protocol": NO_MEMBERS,
    "group.remote.assignor": NO_MEMBERS,
    "heartbeat.interval.ms": NO_MEMBERS,
    "internal.throw.on.fetch.stable.offset.unsupported": NO_MEMBERS,
    "max.block.ms": OWN_TIMES,
    "max.poll.interval.ms": NO_MEMBERS,
    "max.poll.records": "maxOffsetsPerTrigger and maxRecordsPerPartition say how much is read",
    "metadata.max.idle.ms": "what is known of a topic is kept as long as a worker lives",
    "metric.reporters": JAVA_METRICS,
    "metrics.num.samples": JAVA_METRICS,
    "metrics.recording.level": JAVA_METRICS,
    "metrics.sample.window.ms": JAVA_METRICS,
    "partitioner.adaptive.partitioning.enable": "records without a key stay together, on a partition by chance",
    "partitioner.availability.timeout.ms": "records without a key stay together, on a partition by chance",
    "sasl.kerberos.ticket.renew.jitter": OWN_REFRESH,
    "sasl.kerberos.ticket.renew.window.factor": OWN_REFRESH,
    "sasl.login.connect.timeout.ms": OWN_REFRESH,
    "sasl.login.read.timeout.ms": OWN_REFRESH,
    "sasl.login.refresh.buffer.seconds": OWN_REFRESH,
    "sasl.login.refresh.min.period.seconds": OWN_REFRESH,
    "sasl.login.refresh.window.factor": OWN_REFRESH,
    "sasl.login.refresh.window.jitter": OWN_REFRESH,
    "sasl.login.retry.backoff.max.ms": OWN_REFRESH,
    "sasl.login.retry.backoff.ms": OWN_REFRESH,
    "sasl.oauthbearer.clock.skew.seconds": BROKERS_CHECK,
    "sasl.oauthbearer.expected.audience": BROKERS_CHECK,
    "sasl.oauthbearer.expected.issuer": BROKERS_CHECK,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": BROKERS_CHECK,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": BROKERS_CHECK,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": BROKERS_CHECK,
    "sasl.oauthbearer.jwks.endpoint.url": BROKERS_CHECK,
    "sasl.oauthbearer.scope.claim.name": BROKERS_CHECK,
    "session.timeout.ms": NO_MEMBERS,
    "share.acknowledgement.mode": "nothing is read by a share group",
    "share.acquire.mode": "nothing is read by a share group",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms is the limit of every attempt",
    "ssl.keymanager.algorithm": OPENSSL,
    "ssl.trustmanager.algorithm": OPENSSL,
    "ssl.truststore.password": "certificates as PEM have no password",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Refusal:
    """`harmless` are values that ask for nothing, beside an empty one: a pattern for the whole of it, in lower case."""

    reason: str
    harmless: str = ""


JKS_KEYS = "a JKS store cannot be read; convert it: keytool -importkeystore -deststoretype pkcs12"
JKS_CERTIFICATES = "this store cannot be read; export its certificates as PEM and set kafka.ssl.truststore.type=PEM"
REFUSED = {
    "auto.offset.reset": Refusal("where a query begins is said by startingOffsets"),
    "bootstrap.controllers": Refusal("brokers are asked, not controllers: give kafka.bootstrap.servers"),
    "config.providers": Refusal(f"{A_CLASS}, so that no value can come from it; give the values themselves"),
    "enable.auto.commit": Refusal("offsets are committed when Spark has finished a batch"),
    "enable.auto.offset.store": Refusal("offsets are committed when Spark has finished a batch"),
    "exclude.internal.topics": Refusal(
        "subscribePattern never means the brokers' own topics; name those in subscribe", harmless="true"
    ),
    "interceptor.classes": Refusal("there are no interceptors, and they could change what is read"),
    "key.deserializer": Refusal("keys are read as bytes; use keyFormat, or decode them with frame operations"),
    "key.serializer": Refusal("keys are written as bytes; use keyFormat, or encode them with frame operations"),
    "partition.assignment.strategy": Refusal("Spark assigns partitions to tasks"),
    "partitioner.class": Refusal(
        f"{A_CLASS}; a column partition says where each row goes, or kafka.partitioner names one of librdkafka's: "
        "murmur2_random (as Java), consistent_random, fnv1a_random, random",
        harmless=r"org\.apache\.kafka\.clients\.producer\.internals\.defaultpartitioner",
    ),
    "sasl.client.callback.handler.class": Refusal(A_CLASS),
    "sasl.login.callback.handler.class": Refusal(
        f"{A_CLASS}; for OAuth give librdkafka's own settings: kafka.sasl.oauthbearer.method=oidc with "
        "kafka.sasl.oauthbearer.client.id, .client.secret and .token.endpoint.url"
    ),
    "sasl.login.class": Refusal(A_CLASS),
    "sasl.oauthbearer.header.urlencode": Refusal("librdkafka does not encode the header", harmless="false"),
    "sasl.oauthbearer.jwt.retriever.class": Refusal(
        A_CLASS, harmless=r"org\.apache\.kafka\.common\.security\.oauthbearer\.defaultjwtretriever"
    ),
    "sasl.oauthbearer.jwt.validator.class": Refusal(
        A_CLASS, harmless=r"org\.apache\.kafka\.common\.security\.oauthbearer\.defaultjwtvalidator"
    ),
    "security.providers": Refusal(A_CLASS),
    "ssl.enabled.protocols": Refusal(
        "TLS 1.2 and 1.3 are both spoken, and the brokers choose; one alone is set there", harmless=r".*tlsv1\.2.*"
    ),
    "ssl.engine.factory.class": Refusal(A_CLASS),
    "ssl.keystore.type": Refusal(JKS_KEYS, harmless="pem|pkcs12"),
    "ssl.protocol": Refusal("TLS 1.2 and 1.3 are spoken, nothing older", harmless=r"tls|tlsv1\.[23]"),
    "ssl.provider": Refusal(f"{OPENSSL}; kafka.ssl.providers names providers of OpenSSL"),
    "ssl.secure.random.implementation": Refusal(OPENSSL),
    "ssl.truststore.type": Refusal(JKS_CERTIFICATES, harmless="pem"),
    "transaction.two.phase.commit.enable": Refusal("the sink ends its transactions itself", harmless="false"),
    "transactional.id": Refusal("the sink makes transactional ids of the query and the task; see the option delivery"),
    "value.deserializer": Refusal("values are read as bytes; use valueFormat, or decode them with frame operations"),
    "value.serializer": Refusal("values are written as bytes; use valueFormat, or encode them with frame operations"),
}  # fmt: skip


def refusal_of(name: str, value: str) -> str | None:
    """Why this setting is refused; None if it is not, or asks for nothing."""
    refusal = REFUSED.get(name)
    asked = value.strip().lower()
    if refusal is None or not asked or (refusal.harmless and re.fullmatch(refusal.harmless, asked)):
        return None
    return refusal.reason
