"""The broker as a whole: what state it is in, what it is, and its fetch sessions."""

from __future__ import annotations

from moldau.broker.context import Services
from moldau.broker.metrics.health import Condition
from moldau.core.exposition import Exposition

STARTING, RUNNING, STOPPING = 1, 3, 6  # Kafka's numbers
STATES = {"starting": STARTING, "ready": RUNNING, "fenced": STARTING, "stopping": STOPPING}


def write_broker(condition: Condition, services: Services, out: Exposition) -> None:
    state = STATES[condition.readiness()["status"]]
    out.add("kafka_server_kafkaserver_brokerstate", "1 while it starts, 3 while it runs, 6 while it stops.", {}, state)
    which = {"broker_id": services.broker_id, "cluster_id": services.directories.cluster_id}
    out.add("moldau_broker_info", "Which broker this is.", {**which, "version": condition.version}, 1)
    prefix, sessions = "kafka_server_fetchsessioncache_", services.fetch_sessions
    out.add(f"{prefix}numincrementalfetchsessions", "Fetch sessions.", {}, len(sessions))
    out.add(f"{prefix}numincrementalfetchpartitionscached", "Partitions in them.", {}, sessions.partitions)
