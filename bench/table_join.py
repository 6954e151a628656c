"""One order against many customers: how long a batch of a stream joined with a topic's table takes.

The pipeline of `examples/order_enrichment.sql` runs as its command runs it. An order comes when the one before it is
answered; with every other order a customer changes first. A batch's time is Spark's, from its trigger to its end.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

EXAMPLE = Path(__file__).parents[1] / "examples/order_enrichment.sql"
CUSTOMERS = 1_000_000
ORDERS = 24
WARM_UP = 4
END_S_MAX = 200.0


def fill(bootstrap: str, customers: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topics = [NewTopic("customers", 2, 1), NewTopic("orders", 1, 1), NewTopic("orders-enriched", 1, 1)]
    for made in admin.create_topics(topics).values():
        made.result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 200_000})
    for number in range(customers):
        put_customer(producer, number, f"Customer {number}")
        if number % 10_000 == 0:
            producer.flush()
    producer.flush()


def put_customer(producer: Producer, number: int, name: str) -> None:
    value = {"id": f"c{number}", "name": name, "country": "CZ"}
    producer.produce("customers", json.dumps(value), key=f"c{number}")


@contextmanager
def running(bootstrap: str, folder: Path) -> Iterator[Path]:
    """The pipeline; yields the file of its status."""
    path = folder / "enrichment.sql"
    path.write_text(EXAMPLE.read_text())
    command = [sys.executable, "-m", "moldau", "pipeline", "run", str(path), "--master", "local[2]"]
    with (folder / "pipeline.txt").open("wb") as said:
        process = subprocess.Popen(
            [*command, "--set", f"bootstrap.servers={bootstrap}"], stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
    try:
        yield folder / ".moldau/pipelines/enrichment/status.json"
    finally:
        process.terminate()
        process.wait(END_S_MAX)


def batch_s(status: Path, batch: int, deadline_s: float) -> float:
    while time.monotonic() < deadline_s:
        told: Any = json.loads(status.read_text())["queries"]["enriched_orders"] if status.exists() else {"batch": -1}
        if told["batch"] >= batch and told["batch_ms"]:
            return float(told["batch_ms"]) / 1000
        time.sleep(0.05)
    raise TimeoutError(f"batch {batch} has no end")


def measure(bootstrap: str, folder: Path, customers: int) -> dict[str, list[float]]:
    """Seconds of batches: of the first, of those with the same customers as before, of those with a changed one."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders-enriched"])
    found: dict[str, list[float]] = {"first": [], "same": [], "changed": []}
    with running(bootstrap, folder) as status:
        for number in range(ORDERS):
            customer, is_changed = number * customers // ORDERS, number % 2 == 1
            if is_changed:
                put_customer(producer, customer, "Somebody")
                producer.flush()
            order = {"id": str(number), "customer": f"c{customer}", "amount": 1.0, "at": "2026-01-01T00:00:00Z"}
            producer.produce("orders", json.dumps(order))
            producer.flush()
            answer = consumer.poll(END_S_MAX)
            assert answer is not None, (folder / "pipeline.txt").read_text()
            name = json.loads(answer.value() or b"{}")["name"]
            assert name == ("Somebody" if is_changed else f"Customer {customer}"), name
            spent_s = batch_s(status, number, time.monotonic() + END_S_MAX)
            if number == 0 or number >= WARM_UP:
                found["first" if number == 0 else "changed" if is_changed else "same"].append(spent_s)
    consumer.close()
    return found


def table_join(bootstrap: str, folder: Path, scale: float) -> Iterator[str]:
    customers = max(ORDERS, int(CUSTOMERS * scale))
    fill(bootstrap, customers)
    yield "| customers | batch of one order | s, median | least | most |\n|---|---|---|---|---|"
    for label, spent in measure(bootstrap, folder, customers).items():
        yield f"| {customers:,} | {label} | {statistics.median(spent):.2f} | {min(spent):.2f} | {max(spent):.2f} |"
