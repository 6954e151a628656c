"""Client instances for tests."""

from __future__ import annotations

from moldau.broker.telemetry.subscriptions import Client

ID = bytes(range(16))


def client(instance_id: bytes = ID, client_id: str = "shop", **changes: object) -> Client:
    found = Client(
        instance_id, client_id, "apache-kafka-java", "4.3.1", "10.0.0.7", 4711, "PLAINTEXT", "User:ANONYMOUS"
    )
    return found._replace(**changes)  # type: ignore[arg-type]
