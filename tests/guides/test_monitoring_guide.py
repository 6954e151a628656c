"""The table of metrics in the guide and what a broker tells agree, both ways."""

from __future__ import annotations

import re
from pathlib import Path

from confluent_kafka import Producer

import moldau
from tests.scraping import Scrape, scrape

GUIDE = Path(__file__).parents[2] / "docs/guides/monitoring.md"
ROW = re.compile(r"^\| (`[a-z_`, 0-9]+`) \| ([a-z_`, ]*) ?\|", re.MULTILINE)

# Told of clients that failed to log in, had to pause or pushed their own: with nothing to tell, no line.
OCCASIONAL = {
    "moldau_client_telemetry_info", "moldau_client_throttled_requests_total", "moldau_client_throttle_seconds_total",
    "moldau_failed_logins_total",
}  # fmt: skip


def documented() -> dict[str, set[str]]:
    """The labels of each metric in the guide's tables of metrics."""
    text = GUIDE.read_text()
    rows = ROW.findall(text[text.index("\n## Metrics\n") :])
    return {
        name: set(re.findall(r"`(\w+)`", labels)) for names, labels in rows for name in re.findall(r"`(\w+)`", names)
    }


def exposed(found: Scrape) -> dict[str, set[str]]:
    shown: dict[str, set[str]] = {}
    for family in found.families.values():
        for sample in family.samples:
            name = family.name if family.type in ("histogram", "summary") else sample.name
            shown.setdefault(name, set()).update(set(sample.labels) - {"le"})
        if not family.samples:
            shown[family.name + ("_total" if family.type == "counter" else "")] = set()
    return shown


def test_the_guide_names_every_metric_with_its_labels_and_no_other() -> None:
    with moldau.run(metrics=True) as broker:
        broker.create_topic("orders")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("orders", b"one")
        assert producer.flush(30) == 0
        told = exposed(scrape(broker.metrics_url))
    table = documented()
    assert len(table) > 70
    assert told.keys() - table.keys() == set(), "not in the guide"
    assert table.keys() - told.keys() <= OCCASIONAL, "not told by a broker"
    assert {name: labels for name, labels in told.items() if labels and labels != table[name]} == {}
