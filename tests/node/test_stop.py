"""What was decided when a broker is stopped is done when it has stopped."""

from __future__ import annotations

import socket
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import moldau
from moldau.store.sqlite import FILE_NAME
from moldau.wire.messages import ApiVersionsRequest
from moldau.wire.messages.delete_topics import DeleteTopicsRequest
from tests.hostile.attacker import Attacker

STOP_S_MAX = 20.0


def is_listening(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, STOP_S_MAX):
            return True
    except ConnectionError:
        return False


def test_a_deletion_that_is_being_written_takes_its_folders_along(tmp_path: Path) -> None:
    broker = moldau.run(data_dir=tmp_path)
    address = (broker.host, broker.port)
    with (
        ThreadPoolExecutor(1) as thread,
        closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as metadata,
        Attacker(address) as deleting,
        Attacker(address) as other,
    ):
        broker.create_topic("orders", partitions=3)
        metadata.execute("BEGIN IMMEDIATE")  # a disk that takes its time
        deleting.tell(DeleteTopicsRequest(topic_names=["orders"], timeout_ms=60_000), 2)
        for _ in range(3):
            other.ask(ApiVersionsRequest(), 0)  # by then the deletion was read, too
        stopping = thread.submit(broker.stop)
        while is_listening(address):
            pass
        metadata.execute("ROLLBACK")
        stopping.result(STOP_S_MAX)
    left = sorted(path.name for path in tmp_path.glob("orders-*") if not path.name.endswith("-delete"))
    assert left == [], "no start would ever delete them"
