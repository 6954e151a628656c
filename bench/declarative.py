"""How long an update of a project of Spark's Declarative Pipelines takes, and a record's way to its view.

    python -m bench.declarative                 examples/shop on local[2], five updates of each kind (about 2 minutes)
    python -m bench.declarative --updates 20

The project is the example: a topic as a streaming table, a materialized view and a sink into a topic that read it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import moldau
from bench.stalls import say
from moldau.spark.pipelines.declarative.project import load_project, spec_of
from moldau.spark.pipelines.declarative.server import ConnectServer, open_server
from moldau.spark.pipelines.declarative.update import FlowEvent, Step, Update

EXAMPLE = Path(__file__).parents[1] / "examples" / "shop"
VIEW = "spark_catalog.default.customers"


class Shop:
    def __init__(self, folder: Path, servers: str) -> None:
        path = folder / "shop"
        shutil.copytree(EXAMPLE, path)
        spec = path / "spark-pipeline.yml"
        storage = (folder / "storage").as_uri()
        spec.write_text(spec.read_text().replace("file:///tmp/moldau-shop", storage).replace("localhost:9092", servers))
        self.project = load_project(path)
        self.project.home.mkdir(parents=True)
        self.producer = Producer({"bootstrap.servers": servers})
        admin = AdminClient({"bootstrap.servers": servers})
        for made in admin.create_topics([NewTopic("orders", 2), NewTopic("large-orders", 2)]).values():
            made.result()

    def order(self, count: int) -> None:
        value = {"id": "o", "customer": "ada", "amount": 120.0, "at": "2026-01-31T12:00:00Z"}
        for _ in range(count):
            self.producer.produce("orders", json.dumps(value))
        self.producer.flush()

    def server(self) -> ConnectServer:
        return open_server(self.project, spec_of(self.project).configuration, "local[2]")

    def update(self, server: ConnectServer) -> tuple[float, float]:
        """Seconds until the view was complete, and until the update was."""
        begun, view = time.monotonic(), 0.0

        def heard(event: FlowEvent) -> None:
            nonlocal view
            if event.flow == VIEW and event.step is Step.COMPLETED:
                view = time.monotonic() - begun

        Update(server, self.project, on_elements=lambda _: None, on_event=heard).run()
        return view, time.monotonic() - begun


def row(what: str, seconds: list[float]) -> None:
    say(f"| {what} | {statistics.median(seconds):.1f} s | {min(seconds):.1f} to {max(seconds):.1f} s |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, moldau.run() as broker:
        shop = Shop(Path(folder), broker.bootstrap_servers)
        shop.order(1_000)
        begun = time.monotonic()
        server = shop.server()
        started = time.monotonic() - begun
        say("| | median | from, to |\n|---|---|---|")
        row("Spark's start", [started])
        row("first update, 1,000 records", [shop.update(server)[1]])
        shop.update(server)
        row("update with nothing new", [shop.update(server)[1] for _ in range(options.updates)])
        views, updates = [], []
        for _ in range(options.updates):
            shop.order(1)
            view, update = shop.update(server)
            views.append(view)
            updates.append(update)
        row("one new record: update", updates)
        row("one new record: from the start of the update to the view", views)


if __name__ == "__main__":
    main()
