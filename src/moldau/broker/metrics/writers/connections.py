"""Connections and logins by listener, and the requests that wait on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from moldau.broker.context import Services
from moldau.broker.network.listener import Listener
from moldau.coordinator.long_work import in_slices
from moldau.core.exposition import COUNTER, Exposition
from moldau.wire.api import ApiKey

PREFIX = "kafka_server_socket_server_metrics_"
PURGATORIES = {
    ApiKey.PRODUCE: "Produce", ApiKey.FETCH: "Fetch", ApiKey.JOIN_GROUP: "Rebalance", ApiKey.SYNC_GROUP: "Rebalance",
    ApiKey.DELETE_RECORDS: "DeleteRecords", ApiKey.ELECT_LEADERS: "ElectLeader", ApiKey.CREATE_TOPICS: "topic",
    ApiKey.DELETE_TOPICS: "topic", ApiKey.CREATE_PARTITIONS: "topic",
}  # fmt: skip
"""By Kafka's names of delayed operations."""


async def write_connections(services: Services, out: Exposition) -> None:
    waiting: Counter[str] = Counter()
    for listener in services.listeners:
        _write_listener(listener, services, out)
        async for guest in in_slices([*listener.guests], services.long_work):
            if guest.waits_for is not None:
                waiting[PURGATORIES.get(guest.waits_for, "other")] += 1
    name = "kafka_server_delayedoperationpurgatory_purgatorysize"
    for operation in dict.fromkeys([*PURGATORIES.values(), "other"]):
        out.add(name, "Requests that wait to be answered.", {"delayedoperation": operation}, waiting[operation])


def _write_listener(listener: Listener, services: Services, out: Exposition) -> None:
    labels = {"listener": listener.name}
    created = 0 if services.connections is None else services.connections.created[listener.name]
    proven = listener.authentications
    out.add(f"{PREFIX}connection_count", "Connections that are open.", labels, len(listener.guests))
    rows: Iterable[tuple[str, str, int]] = (
        ("connection_creation_total", "Connections that were made.", created),
        (
            "successful_authentication_total",
            "Logins and handshakes that proved who a client is.",
            0 if proven is None else proven.succeeded,
        ),
        ("failed_authentication_total", "Logins and handshakes that failed.", 0 if proven is None else proven.failed),
    )
    for suffix, help_text, count in rows:
        out.add(f"{PREFIX}{suffix}", help_text, labels, count, COUNTER)
    if proven is not None:
        for client_id, count in proven.failed_by_client.items():
            told = {**labels, "client_id": client_id}
            out.add("moldau_failed_logins_total", "Logins that failed, by client id.", told, count, COUNTER)
    for reason, count in listener.refusals.counts.items():
        help_text = "Connections that this broker ended or did not take, by reason."
        out.add("moldau_connections_ended_total", help_text, {**labels, "reason": reason}, count, COUNTER)
