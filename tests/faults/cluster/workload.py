"""Real clients under load, as threads of one process on one host; every operation goes into its history.

`python -m tests.faults.cluster.workload SPEC` runs what the JSON says. A line `drain` on standard input ends all
senders, which `drained` on standard output answers; consumers go on until the input ends.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
from confluent_kafka import KafkaException

from tests.faults.cluster.consuming import GroupMember, Reader
from tests.faults.cluster.copying import Copier
from tests.faults.cluster.history import History
from tests.faults.cluster.producing import IdempotentProducer, TransactionalWriter
from tests.faults.cluster.raw_clients import Corruptor, LateEnder
from tests.faults.cluster.worker import Worker, World

KINDS: dict[str, Callable[[World, str, int], Worker]] = {
    "producer": IdempotentProducer,
    "writer": TransactionalWriter,
    "copier": Copier,
    "member": GroupMember,
    "reader": lambda world, name, seed: Reader(world, name, seed, committed=True),
    "raw_reader": lambda world, name, seed: Reader(world, name, seed, committed=False),
    "corruptor": Corruptor,
    "late_ender": LateEnder,
}
SENDERS = (IdempotentProducer, TransactionalWriter, Corruptor, LateEnder)
RESTART_S = 0.3


class Spec(msgspec.Struct):
    client: dict[str, str]
    """How clients reach the cluster, in librdkafka's words."""
    addresses: list[str]
    """Of all brokers in the order of their ids, where nobody has to log in."""
    history: str
    name: str
    workers: list[str]
    """Kinds; several of a kind are several workers."""
    seed: int = 0
    sends_per_s: float = 100.0
    partitions: int = 3


def main() -> int:
    faulthandler.register(signal.SIGUSR1)  # where its threads stand, for whoever wonders why a run does not end
    spec = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Spec)
    history = History(Path(spec.history))
    world = World(spec.client, spec.addresses, history, partitions=spec.partitions, sends_per_s=spec.sends_per_s)
    workers = [
        KINDS[kind](world, f"{spec.name}-{kind}-{number}", spec.seed * 1_000 + number)
        for number, kind in enumerate(spec.workers)
    ]
    threads = [threading.Thread(target=keep_running, args=(world, worker), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    for line in sys.stdin:
        if line.strip() == "drain":
            world.draining.set()
            for thread, worker in zip(threads, workers, strict=True):
                if isinstance(worker, SENDERS):
                    thread.join()
            print("drained", flush=True)
    world.draining.set()
    world.stopping.set()
    for thread in threads:
        thread.join(20)
    return 0


def keep_running(world: World, worker: Worker) -> None:
    """One session after another: a client that fails for good is replaced, as its supervisor would."""
    while not worker.is_done():
        try:
            worker.session()
        except (KafkaException, SystemError) as wrong:
            # SystemError: after a fatal error the client library calls back with its exception still set.
            world.history.note(worker.name, "session", "fail", error=str(wrong.args[0]))
        except Exception as wrong:
            # A fault of the harness itself: it must be seen, not lost with the thread.
            world.history.note(worker.name, "session", "crash", error=repr(wrong))
        world.stopping.wait(RESTART_S)


if __name__ == "__main__":
    sys.exit(main())
