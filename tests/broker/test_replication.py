"""A broker that is alone has nothing of a cluster: no module is loaded and nothing runs for it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

WAIT_S_MAX = 60.0

# Whatever is in these is for brokers that have others, except for what is named below.
CLUSTER = (
    "moldau.replication.",
    "moldau.broker.replicat",
    "moldau.security",
    "moldau.store.tree",
    "moldau.store.moving",
)
OF_EVERY_BROKER = {
    "moldau.broker.replication",
    "moldau.replication.assignment",
    "moldau.replication.delayed_commit",
    "moldau.replication.partition",
    "moldau.replication.watcher",
    # The image has ACLs, credentials and tokens, answers have sets of operations, and everybody is a principal.
    "moldau.security",
    "moldau.security.acls",
    "moldau.security.acls.bindings",
    "moldau.security.acls.vocabulary",
    "moldau.security.delegation_tokens",
    "moldau.security.principals",
    "moldau.security.sasl",
    "moldau.security.sasl.scram",
    "moldau.security.sasl.scram.credential",
}
OF_A_CLUSTER = {
    "moldau.broker.fetching.replica_reading",
    "moldau.broker.gathered_questions",
    "moldau.broker.handlers.allocate_producer_ids",
    "moldau.broker.handlers.alter_partition",
    "moldau.broker.handlers.assign_replicas_to_dirs",
    "moldau.broker.handlers.between_brokers",
    "moldau.broker.handlers.envelope",
    "moldau.broker.producing.remote_admission",
    "moldau.broker.producing.remote_markers",
    "moldau.broker.requests.forwarding",
    "moldau.broker.topics.remote_creation",
    "moldau.controller.duties",
    "moldau.controller.partitions.elections",
    "moldau.controller.members.failed_directories",
    "moldau.controller.partitions.isr_changes",
    "moldau.controller.members.membership",
    "moldau.controller.partitions.changes",
    "moldau.controller.partitions.edits",
    "moldau.controller.partitions.reassignment",
    "moldau.controller.members.registration",
    "moldau.node.storage.lost_replicas",
    "moldau.node.cluster.membership",
    "moldau.node.cluster.others",
    "moldau.node.cluster.several",
}


def loaded_by_a_broker_at_work(folder: Path) -> set[str]:
    """The modules of a broker that was started, written to, read by a group, emptied and stopped."""
    command = [sys.executable, "-X", "importtime", "-m", "moldau", "start", "--host", "127.0.0.1", "--port", "0"]
    command += ["--override", "group.initial.rebalance.delay.ms=0"]
    with (folder / "imports").open("wb") as imports:
        broker = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=imports, text=True)
        with broker:
            try:
                assert broker.stdout is not None
                while not (found := re.search(r"listening +(\S+)", line := broker.stdout.readline())):
                    assert line, "it ended by itself"
                use(found[1])
                broker.send_signal(signal.SIGTERM)
                assert broker.wait(WAIT_S_MAX) == 0
            finally:
                broker.kill()
    return set(re.findall(r"^import time:.*\| +(\S+)$", (folder / "imports").read_text(), re.MULTILINE))


def use(bootstrap_servers: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce("orders", b"one")
    assert producer.flush(WAIT_S_MAX) == 0
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    assert consumer.consume(1, WAIT_S_MAX)[0].value() == b"one"
    consumer.close()
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    (deleted,) = admin.delete_records([TopicPartition("orders", 0, 1)]).values()
    assert deleted.result(WAIT_S_MAX).low_watermark == 1


def test_a_broker_that_is_alone_loads_nothing_that_only_a_cluster_needs(tmp_path: Path) -> None:
    loaded = loaded_by_a_broker_at_work(tmp_path)
    assert loaded >= OF_EVERY_BROKER
    assert not loaded & OF_A_CLUSTER
    assert {name for name in loaded if name.startswith(CLUSTER)} == OF_EVERY_BROKER


def test_what_only_a_cluster_needs_is_there() -> None:
    """Else a module that has another name by now would be looked for in vain."""
    source = Path(__file__).parents[2] / "src"
    for name in OF_A_CLUSTER | OF_EVERY_BROKER:
        path = source.joinpath(*name.split("."))
        assert path.with_suffix(".py").exists() or (path / "__init__.py").exists(), name
