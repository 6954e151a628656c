"""Which of Apache Kafka's broker keys a start must not accept, and which it accepts although they change nothing.

Every key of Kafka 4.3 and every key that 3.9 had beside them is in exactly one of three classes:

    it has a reader           the usual case, and not listed here; a test looks for the reader in the code
    WITHOUT_EFFECT            set or not, clients and data fare the same; a value other than the default is reported
    REFUSED                   whoever sets it relies on something that is not there, such as access control; only the
                              values that ask for nothing are accepted

The rule for REFUSED: a configuration that was written to protect something must never start as if it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from moldau.core.config.keys.metadata_store import METADATA_STORE_KEYS

_OTHER_LIMITS = "what brokers ask each other for is retried, and limited, in a fixed way"
_NO_QUORUM = "the broker keeps the cluster's metadata itself; there is no controller quorum"
_NO_TIERS = "tiered storage is not supported"
_NO_SHARE_GROUPS = "share groups are not supported"
_NO_STREAMS_GROUPS = "streams groups are not supported"
_NO_METRICS = "metrics are read from metrics.listener, as counts since the start"
_OTHER_ZOOKEEPER = "what is asked of ZooKeeper at a time, and read back, is fixed"
_OWN_TICKETS = "a broker's tickets come by its keytab, and new ones are fetched after half of their time"
_OWN_THREADS = "one event loop serves the clients, and a small pool of threads the disk"
_OTHER_BUFFERS = "the size of this buffer is fixed"

_WITHOUT_EFFECT = (
    (_OWN_THREADS, "num.network.threads num.io.threads background.threads log.cleaner.threads"),
    (_OWN_THREADS, "group.coordinator.threads group.coordinator.background.threads share.coordinator.threads"),
    (_OWN_THREADS, "num.replica.alter.log.dirs.threads"),
    ("a request is handled as soon as it has arrived, so that none is ever queued", "queued.max.requests"),
    (_OTHER_LIMITS, "socket.connection.setup.timeout.ms socket.connection.setup.timeout.max.ms"),
    (_OTHER_LIMITS, "replica.socket.receive.buffer.bytes log.dir.failure.timeout.ms"),
    (_OTHER_LIMITS, "add.partitions.to.txn.retry.backoff.ms add.partitions.to.txn.retry.backoff.max.ms"),
    ("all listeners open together, when the broker is ready", "early.start.listeners"),
    ("a delayed operation that is complete is forgotten at once", "fetch.purgatory.purge.interval.requests"),
    ("a delayed operation that is complete is forgotten at once", "producer.purgatory.purge.interval.requests"),
    ("a delayed operation that is complete is forgotten at once", "delete.records.purgatory.purge.interval.requests"),
    (_NO_METRICS, "metrics.num.samples metrics.sample.window.ms metrics.recording.level"),
    (_NO_METRICS, "kafka.metrics.polling.interval.secs"),
    (_NO_QUORUM, "controller.quorum.election.timeout.ms controller.quorum.fetch.timeout.ms"),
    (_NO_QUORUM, "controller.quorum.election.backoff.max.ms controller.quorum.append.linger.ms"),
    (_NO_QUORUM, "controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms"),
    (_NO_QUORUM, "controller.quorum.auto.join.enable controller.quorum.fetch.snapshot.max.bytes"),
    (_NO_QUORUM, "controller.quorum.fetch.max.bytes controller.performance.sample.period.ms"),
    (_NO_QUORUM, "controller.performance.always.log.threshold.ms server.max.startup.time.ms"),
    (_NO_QUORUM, "metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms"),
    (_NO_QUORUM, "metadata.log.segment.bytes metadata.log.segment.ms metadata.max.retention.bytes"),
    (_NO_QUORUM, "metadata.max.retention.ms metadata.max.idle.interval.ms internal.metadata.log.segment.bytes"),
    (_NO_QUORUM, "internal.metadata.max.batch.size.in.bytes internal.metadata.delete.delay.millis"),
    ("versions that are not stable are not offered", "unstable.api.versions.enable unstable.feature.versions.enable"),
    (_NO_TIERS, "remote.log.storage.manager.impl.prefix remote.log.metadata.manager.impl.prefix"),
    (_NO_TIERS, "remote.log.storage.manager.class.name remote.log.storage.manager.class.path"),
    (_NO_TIERS, "remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path"),
    (_NO_TIERS, "remote.log.metadata.manager.listener.name remote.log.metadata.custom.metadata.max.bytes"),
    (_NO_TIERS, "remote.log.index.file.cache.total.size.bytes remote.log.index.file.cache.ttl.ms"),
    (_NO_TIERS, "remote.log.manager.thread.pool.size remote.log.manager.copier.thread.pool.size"),
    (_NO_TIERS, "remote.log.manager.expiration.thread.pool.size remote.log.manager.follower.thread.pool.size"),
    (_NO_TIERS, "remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.ms"),
    (_NO_TIERS, "remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.jitter"),
    (_NO_TIERS, "remote.log.reader.threads remote.log.reader.max.pending.tasks remote.fetch.max.wait.ms"),
    (_NO_TIERS, "remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num"),
    (_NO_TIERS, "remote.log.manager.copy.quota.window.size.seconds remote.log.manager.fetch.max.bytes.per.second"),
    (_NO_TIERS, "remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds"),
    (_NO_TIERS, "remote.list.offsets.request.timeout.ms follower.fetch.last.tiered.offset.enable"),
    (_NO_TIERS, "log.local.retention.ms log.local.retention.bytes"),
    (_NO_SHARE_GROUPS, "group.share.session.timeout.ms group.share.min.session.timeout.ms"),
    (_NO_SHARE_GROUPS, "group.share.max.session.timeout.ms group.share.heartbeat.interval.ms"),
    (_NO_SHARE_GROUPS, "group.share.min.heartbeat.interval.ms group.share.max.heartbeat.interval.ms"),
    (_NO_SHARE_GROUPS, "group.share.max.size group.share.assignors group.share.assignment.interval.ms"),
    (_NO_SHARE_GROUPS, "group.share.min.assignment.interval.ms group.share.max.assignment.interval.ms"),
    (_NO_SHARE_GROUPS, "group.share.initialize.retry.interval.ms group.share.delivery.count.limit"),
    (_NO_SHARE_GROUPS, "group.share.max.delivery.count.limit group.share.min.delivery.count.limit"),
    (_NO_SHARE_GROUPS, "group.share.record.lock.duration.ms group.share.min.record.lock.duration.ms"),
    (_NO_SHARE_GROUPS, "group.share.max.record.lock.duration.ms group.share.partition.max.record.locks"),
    (_NO_SHARE_GROUPS, "group.share.max.partition.max.record.locks group.share.min.partition.max.record.locks"),
    (_NO_SHARE_GROUPS, "share.fetch.purgatory.purge.interval.requests group.share.max.share.sessions"),
    (_NO_SHARE_GROUPS, "group.share.persister.class.name share.coordinator.state.topic.num.partitions"),
    (_NO_SHARE_GROUPS, "share.coordinator.state.topic.replication.factor share.coordinator.state.topic.min.isr"),
    (_NO_SHARE_GROUPS, "share.coordinator.state.topic.segment.bytes share.coordinator.load.buffer.size"),
    (_NO_SHARE_GROUPS, "share.coordinator.snapshot.update.records.per.snapshot share.coordinator.write.timeout.ms"),
    (_NO_SHARE_GROUPS, "share.coordinator.state.topic.compression.codec share.coordinator.append.linger.ms"),
    (_NO_SHARE_GROUPS, "share.coordinator.state.topic.prune.interval.ms share.coordinator.cached.buffer.max.bytes"),
    (_NO_SHARE_GROUPS, "share.coordinator.cold.partition.snapshot.interval.ms"),
    (_NO_STREAMS_GROUPS, "group.streams.session.timeout.ms group.streams.min.session.timeout.ms"),
    (_NO_STREAMS_GROUPS, "group.streams.max.session.timeout.ms group.streams.heartbeat.interval.ms"),
    (_NO_STREAMS_GROUPS, "group.streams.min.heartbeat.interval.ms group.streams.max.heartbeat.interval.ms"),
    (_NO_STREAMS_GROUPS, "group.streams.max.size group.streams.num.standby.replicas"),
    (_NO_STREAMS_GROUPS, "group.streams.max.standby.replicas group.streams.initial.rebalance.delay.ms"),
    (_NO_STREAMS_GROUPS, "group.streams.assignment.interval.ms group.streams.min.assignment.interval.ms"),
    (_NO_STREAMS_GROUPS, "group.streams.max.assignment.interval.ms"),
    ("a segment's file grows with its records", "log.preallocate"),
    ("housekeeping begins one interval after the start", "log.initial.task.delay.ms"),
    (_OTHER_BUFFERS, "log.cleaner.io.buffer.size offsets.load.buffer.size transaction.state.log.load.buffer.size"),
    (_OTHER_BUFFERS, "group.coordinator.cached.buffer.max.bytes"),
    ("compaction's map of keys is no table that fills up", "log.cleaner.io.buffer.load.factor"),
    ("committed offsets are stored uncompressed", "offsets.topic.compression.codec"),
    ("a commit waits for its replicas as long as its client does", "offsets.commit.timeout.ms"),
    ("what is decided in one turn of the event loop is appended together", "group.coordinator.append.linger.ms"),
    ("each transaction has a timer", "transaction.abort.timed.out.transaction.cleanup.interval.ms"),
    (_OWN_TICKETS, "sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin"),
    (_OWN_TICKETS, "sasl.kerberos.ticket.renew.window.factor sasl.kerberos.ticket.renew.jitter"),
    # Keys of Kafka 3.9 and before.
    (_NO_METRICS, "auto.include.jmx.reporter"),
    (_NO_QUORUM, "metadata.log.segment.min.bytes"),
    ("a broker's number is node.id, 0 if it is not set", "broker.id.generation.enable reserved.broker.max.id"),
    (_OTHER_LIMITS, "controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms"),
    ("brokers speak the versions that both know", "inter.broker.protocol.version"),
    ("it is the level of the feature `eligible.leader.replicas.version`", "eligible.leader.replicas.enable"),
    ("every preferred replica that can lead is elected", "leader.imbalance.per.broker.percentage"),
    ("a follower is in sync by time, and a commit waits for all that are", "replica.lag.max.messages"),
    ("a follower is in sync by time, and a commit waits for all that are", "offsets.commit.required.acks"),
    (_NO_SHARE_GROUPS, "group.share.enable group.share.max.groups"),
    ("there is one group coordinator, and it knows both protocols", "group.coordinator.new.enable"),
    ("record batches have the one format of Kafka 0.11 and later", "log.message.format.version"),
    ("record batches have the one format of Kafka 0.11 and later", "log.message.downconversion.enable"),
    ("no password is stored with the configuration", "password.encoder.secret password.encoder.old.secret"),
    ("no password is stored with the configuration", "password.encoder.keyfactory.algorithm"),
    ("no password is stored with the configuration", "password.encoder.cipher.algorithm password.encoder.iterations"),
    ("no password is stored with the configuration", "password.encoder.key.length"),
    (_OTHER_ZOOKEEPER, "zookeeper.max.in.flight.requests zookeeper.sync.time.ms"),
    (_OTHER_ZOOKEEPER, "zookeeper.metadata.migration.min.batch.size"),
)  # fmt: skip

# What belongs to a plugin that is refused or has no effect, or to another vendor's broker.
_WITHOUT_EFFECT_PREFIXES = (
    ("rsm.config.", _NO_TIERS),
    ("rlmm.config.", _NO_TIERS),
    ("confluent.", "it configures Confluent's own broker"),
)


class Refusal(NamedTuple):
    """What is missing, what to do, and the texts that are accepted although they are not the default."""

    reason: str
    remedy: str
    off: tuple[str, ...] = ()


_TLS = Refusal("this key of TLS is not supported", "remove it")
_SASL = Refusal("this key of SASL is not supported", "remove it")
_BETWEEN_BROKERS = Refusal("this key of logins between brokers is not supported", "remove it")
_NO_PLUGINS = Refusal("Java classes cannot be loaded", "remove it")
_ZOOKEEPER_TLS = Refusal("this key of TLS to ZooKeeper is not supported", "remove it")
_NO_REVOCATION = Refusal("revoked certificates are not looked for", "remove it", off=("false",))
_NETTY = ("org.apache.zookeeper.clientcnxnsocketnetty",)  # what Java needs for TLS
_MIGRATION = Refusal("there is no controller quorum to migrate to", "remove it", off=("false",))
_QUOTA = Refusal(
    "a file has no quotas since Kafka 3.0",
    "remove it, and set one for all client ids: moldau quotas set client-id= producer_byte_rate=...",
    off=("9223372036854775807",),
)

# What Kafka needs to be told so that it asks issuers, and checks signatures of tokens, as is done here in any case.
_OAUTHBEARER = "org.apache.kafka.common.security.oauthbearer."
_TOKEN_HANDLERS = tuple(f"{_OAUTHBEARER}{package}oauthbearervalidatorcallbackhandler" for package in ("", "secured."))
_LOGIN_HANDLERS = tuple(f"{_OAUTHBEARER}{package}oauthbearerlogincallbackhandler" for package in ("", "secured."))
_TOKEN_RETRIEVERS = tuple(f"{_OAUTHBEARER}{way}jwtretriever" for way in ("default", "clientcredentials", "file"))
_TOKEN_VALIDATORS = (f"{_OAUTHBEARER}brokerjwtvalidator",)

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_SELECTORS = (RACK_AWARE_SELECTOR.lower(), "org.apache.kafka.common.replica.leaderselector")

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
# Those that Kafka had while its ACLs were in ZooKeeper decide as the one of today.
_AUTHORIZERS = (
    STANDARD_AUTHORIZER.lower(), "kafka.security.authorizer.aclauthorizer", "kafka.security.auth.simpleaclauthorizer",
)  # fmt: skip

_REFUSED: tuple[tuple[Refusal, str], ...] = (
    (Refusal(_NO_PLUGINS.reason, f"use {STANDARD_AUTHORIZER}", off=_AUTHORIZERS), "authorizer.class.name"),
    (Refusal("principals are made as Kafka's default does, and Java classes cannot be loaded", "remove it"),
     "principal.builder.class"),
    (_NO_PLUGINS, "security.providers ssl.provider ssl.secure.random.implementation ssl.engine.factory.class"),
    (Refusal("versions are those of ssl.enabled.protocols", "remove it", off=("tls", "tlsv1.2")), "ssl.protocol"),
    (Refusal(_NO_PLUGINS.reason, "remove it", off=("pkix",)), "ssl.keymanager.algorithm"),
    (Refusal(_NO_PLUGINS.reason, "remove it", off=("sunx509",)), "ssl.trustmanager.algorithm"),
    (Refusal(_NO_PLUGINS.reason, "remove it", off=_TOKEN_HANDLERS), "sasl.server.callback.handler.class"),
    (Refusal(_NO_PLUGINS.reason, "remove it", off=_LOGIN_HANDLERS), "sasl.login.callback.handler.class"),
    (Refusal(_NO_PLUGINS.reason, "remove it", off=_TOKEN_RETRIEVERS), "sasl.oauthbearer.jwt.retriever.class"),
    (Refusal(_NO_PLUGINS.reason, "remove it", off=_TOKEN_VALIDATORS), "sasl.oauthbearer.jwt.validator.class"),
    (_NO_PLUGINS, "create.topic.policy.class.name alter.config.policy.class.name client.quota.callback.class"),
    (_NO_PLUGINS, "metric.reporters kafka.metrics.reporters"),
    (Refusal(_NO_PLUGINS.reason, f"use {RACK_AWARE_SELECTOR}, or remove it", off=_SELECTORS), "replica.selector.class"),
    (Refusal("references to secrets are not resolved", "write the values out, and remove it"), "config.providers"),
    (Refusal("tiered storage is not supported yet", "remove it"), "remote.log.storage.system.enable"),
    (Refusal("new partitions go to all of log.dirs", "take the directory out of log.dirs"), "cordoned.log.dirs"),
    (Refusal("the metadata is kept in the first directory of log.dirs", "remove it"), "metadata.log.dir"),
    (Refusal("there is no listener for controllers alone", "remove it"), "control.plane.listener.name"),
    (_QUOTA, "quota.producer.default quota.consumer.default"),
    (Refusal(_NO_PLUGINS.reason, "remove it", off=_NETTY), "zookeeper.clientCnxnSocket"),
    (_NO_REVOCATION, "zookeeper.ssl.crl.enable zookeeper.ssl.ocsp.enable"),
    (Refusal("versions are those of zookeeper.ssl.enabled.protocols", "remove it", off=("tls", "tlsv1.2", "tlsv1.3")),
     "zookeeper.ssl.protocol"),
    (_MIGRATION, "zookeeper.metadata.migration.enable"),
)  # fmt: skip

# The keys of TLS and SASL that have a reader; a listener may have them for itself, or for one of its mechanisms.
_SECURING = """
    ssl.keystore.type ssl.keystore.location ssl.keystore.password ssl.key.password ssl.keystore.key
    ssl.keystore.certificate.chain ssl.truststore.type ssl.truststore.location ssl.truststore.password
    ssl.truststore.certificates ssl.enabled.protocols ssl.cipher.suites ssl.client.auth ssl.principal.mapping.rules
    ssl.allow.dn.changes ssl.allow.san.changes sasl.enabled.mechanisms sasl.server.max.receive.size sasl.jaas.config
    connections.max.reauth.ms sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    ssl.endpoint.identification.algorithm sasl.mechanism.inter.broker.protocol sasl.oauthbearer.token.endpoint.url
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.scope sasl.kerberos.service.name sasl.kerberos.principal.to.local.rules
"""
SECURING = frozenset(_SECURING.split())

# Also for names that no Kafka has: `ssl.` is how a key says that it is about TLS.
_REFUSED_PREFIXES = (
    ("ssl.", _TLS),
    ("sasl.login.", _BETWEEN_BROKERS),
    ("sasl.client.", _BETWEEN_BROKERS),
    ("sasl.oauthbearer.", _BETWEEN_BROKERS),
    ("sasl.", _SASL),
    ("zookeeper.ssl.", _ZOOKEEPER_TLS),
    ("config.providers.", Refusal("references to secrets are not resolved", "write the values out, and remove it")),
)


def _by_key(rows: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    for reason, keys in rows:
        for key in keys.split():
            yield key, reason


_METADATA_STORE = frozenset(each.name for each in METADATA_STORE_KEYS)
WITHOUT_EFFECT: Mapping[str, str] = MappingProxyType(dict(_by_key(_WITHOUT_EFFECT)))
REFUSED: Mapping[str, Refusal] = MappingProxyType({key: why for why, keys in _REFUSED for key in keys.split()})


def without_effect(key: str) -> str | None:
    """Why setting this key changes nothing; None when it does something, is refused, or is unknown."""
    found = WITHOUT_EFFECT.get(key)
    return found or next((reason for prefix, reason in _WITHOUT_EFFECT_PREFIXES if key.startswith(prefix)), None)


def refusal(key: str) -> Refusal | None:
    """Why a start that relies on this key is refused; None when it is not."""
    if key in SECURING or key in _METADATA_STORE or key in WITHOUT_EFFECT:
        return None
    found = REFUSED.get(key)
    return found or next((why for prefix, why in _REFUSED_PREFIXES if key.startswith(prefix)), None)
