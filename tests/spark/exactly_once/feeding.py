"""A producer beside the pipelines: orders in transactions, some aborted, and customers that change all the time."""

from __future__ import annotations

import json
import threading
import time
from bisect import bisect_right
from collections.abc import Iterable
from typing import Self

from confluent_kafka import KafkaException, Producer

from tests.spark.topics import ANSWER_S_MAX, Topics

ABORTED_FROM = 1_000_000_000  # ids that nobody may ever see
CUSTOMERS = 10
EVERY_S = 1.0


class Feeder(threading.Thread):
    """Sends orders from 0 on until it is told to end.

    Each transaction of orders comes after a new version of all customers, and before one that is aborted.
    """

    def __init__(self, topics: Topics, orders: str, customers: str, *, per_transaction: int) -> None:
        super().__init__(daemon=True)
        self._topics, self._orders, self._customers = topics, orders, customers
        self._per_transaction = per_transaction
        self._enough: int | None = None
        self._producer: Producer | None = None
        self.versions = 0
        self.sent = 0
        self.failures = 0
        self._least_versions: list[tuple[int, int]] = []  # orders from here on came after this version of the customers

    def __enter__(self) -> Self:
        self.send_once()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end(0)

    def end(self, records: int) -> None:
        """As soon as there are so many."""
        self._enough = records
        self.join()

    def least_version(self, order: int) -> int:
        """The version of the customers that was there before the order."""
        return self._least_versions[bisect_right(self._least_versions, order, key=lambda each: each[0]) - 1][1]

    def run(self) -> None:
        while self._enough is None or self.sent < self._enough:
            time.sleep(EVERY_S)
            try:
                self.send_once()
            except (KafkaException, AssertionError):
                # The broker was killed, and what was sent may be there or not.
                self.failures += 1
                self._producer = None

    def send_once(self) -> None:
        if self._producer is None:
            self._producer = Producer(
                {"bootstrap.servers": self._topics.bootstrap, "transactional.id": "feeder", "log_level": 0}
            )
            self._producer.init_transactions(ANSWER_S_MAX)
            self.sent = len(self._topics.values(self._orders))
        self._transaction(self._customers, customers(self.versions), commit=True)
        self._least_versions.append((self.sent, self.versions))
        self.versions += 1
        ids = range(self.sent, self.sent + self._per_transaction)
        self._transaction(self._orders, map(order, ids), commit=True)
        self.sent = ids.stop
        self._transaction(self._orders, map(order, range(ABORTED_FROM, ABORTED_FROM + 9)), commit=False)

    def _transaction(self, topic: str, records: Iterable[tuple[str, str]], *, commit: bool) -> None:
        producer = self._producer
        assert producer is not None
        producer.begin_transaction()
        for key, value in records:
            producer.produce(topic, value, key=key)
        if commit:
            producer.commit_transaction(ANSWER_S_MAX)
        else:
            assert producer.flush(ANSWER_S_MAX) == 0
            producer.abort_transaction(ANSWER_S_MAX)


def order(number: int) -> tuple[str, str]:
    return str(number), json.dumps({"id": number, "customer": f"c{number % CUSTOMERS}"})


def customers(version: int) -> Iterable[tuple[str, str]]:
    return [(f"c{number}", json.dumps({"id": f"c{number}", "version": version})) for number in range(CUSTOMERS)]
