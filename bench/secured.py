"""Over TLS beside Apache Kafka: records by its own tools, and handshakes, with SASL_SSL or TLS alone.

    python -m bench.secured                               everything, three rounds (about 8 minutes on two cores)
    python -m bench.secured --rounds 1 --records 100000   a quick try

Both brokers live while they are measured in turn, with the same certificate (P-256, in PEM) and TLS 1.3. Records go
over SASL_SSL with SCRAM-SHA-512; a handshake is one of TLS, whole, on a connection of its own, from eight threads of
one process. CPU is that of the broker alone. A ratio is one of medians, and above 1.00 is better than Apache Kafka.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench.brokers import SERVER_JVM, Broker, answers, java
from bench.stalls import say
from moldau.security.tls.issuing import new_authority, new_server
from tests import apache_kafka

TOOLS = "org.apache.kafka.tools."
CLIENT_JVM = ["-Xmx512M", "-XX:+UseSerialGC"]
RUN_S_MAX = 600
HANDSHAKING_S, HANDSHAKING_THREADS = 5.0, 8
USER, PASSWORD = "bench", "bench-secret"
LOGIN = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{USER}" password="{PASSWORD}";'
SMALL, LARGE = ("small", 100, 1), ("large", 1_024, 6)
CLUSTER_ID = "bW9sZGF1LWJlbmNoLTAwMQ"
ADD_USER = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"


class Ports(NamedTuple):
    plain: int
    tls: int
    sasl: int
    controller: int


class Secured(NamedTuple):
    broker: Broker
    ports: Ports
    client: Path
    figures: dict[str, list[float]]

    def note(self, name: str, value: float) -> None:
        self.figures.setdefault(name, []).append(value)

    def cpu_s(self) -> float:
        assert self.broker.process is not None
        fields = Path(f"/proc/{self.broker.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def listeners(ports: Ports, store: Path) -> dict[str, str]:
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{ports.plain},SSL://127.0.0.1:{ports.tls},SASL_SSL://127.0.0.1:{ports.sasl}",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "offsets.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
    }


def kafka_settings(ports: Ports, store: Path, directory: Path) -> dict[str, str]:
    common = listeners(ports, store)
    return {
        **common,
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{ports.controller}",
        "listeners": f"{common['listeners']},CONTROLLER://127.0.0.1:{ports.controller}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
        "log.dirs": str(directory / "data"),
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        # Apache Kafka wants a module named for a listener whose users are elsewhere; it has none of its own.
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
    }


def written(path: Path, settings: dict[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


@contextmanager
def both(scratch: Path) -> Iterator[list[Secured]]:
    now = datetime.now(UTC)
    authority = new_authority(name="Bench CA", now=now)
    server = new_server(authority, hosts=["localhost", "127.0.0.1"], now=now)
    store, trust = scratch / "server.pem", scratch / "ca.pem"
    store.write_bytes(server.key_pem() + server.certificate_pem())
    trust.write_bytes(authority.certificate_pem())
    client = written(
        scratch / "client.properties",
        {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(trust),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": LOGIN,
        },
    )
    sides = []
    for name, make in (("ours", _ours), ("kafka", _kafka)):
        directory = scratch / name
        directory.mkdir()
        ports = Ports(*apache_kafka.free_ports(4))
        sides.append(Secured(make(ports, store, directory), ports, client, {}))
    try:
        for side in sides:
            side.broker.start(answers)
        yield sides
    finally:
        for side in sides:
            side.broker.stop()


def _ours(ports: Ports, store: Path, directory: Path) -> Broker:
    config = written(directory / "server.properties", {**listeners(ports, store), "log.dirs": str(directory / "data")})
    command = [sys.executable, "-m", "moldau", "start", str(config), "--add-scram", ADD_USER, "--log-level", "WARNING"]
    return Broker("ours", command, ports.plain, directory)


def _kafka(ports: Ports, store: Path, directory: Path) -> Broker:
    config = written(directory / "server.properties", kafka_settings(ports, store, directory))
    words = ["format", "-t", CLUSTER_ID, "-c", str(config), "--add-scram", ADD_USER]
    made = apache_kafka.tool("kafka.tools.StorageTool", *words)
    assert made.returncode == 0, made.stdout + made.stderr
    return Broker("kafka", java("kafka.Kafka", str(config), jvm=SERVER_JVM), ports.plain, directory)


def tool(name: str, *words: str) -> str:
    done = subprocess.run(
        java(TOOLS + name, *words, jvm=CLIENT_JVM), capture_output=True, text=True, timeout=RUN_S_MAX, check=False
    )
    if done.returncode:
        sys.exit(f"{name} failed: {(done.stdout + done.stderr)[-800:]}")
    return done.stdout


def create(side: Secured, topic: str, partitions: int) -> None:
    address = ["--bootstrap-server", f"127.0.0.1:{side.ports.plain}"]
    tool("TopicCommand", *address, "--create", "--topic", topic, "--partitions", str(partitions))


def produce(side: Secured, topic: str, records: int, size: int) -> float:
    words = ["--topic", topic, "--num-records", str(records), "--record-size", str(size), "--throughput", "-1"]
    address = ["--bootstrap-server", f"127.0.0.1:{side.ports.sasl}", "--command-config", str(side.client)]
    said = tool("ProducerPerformance", *words, *address, "--command-property", "batch.size=131072")
    return float(re.findall(r"([\d.]+) MB/sec", said)[-1])


def consume(side: Secured, topic: str, records: int) -> float:
    address = ["--bootstrap-server", f"127.0.0.1:{side.ports.sasl}", "--command-config", str(side.client)]
    said = tool("ConsumerPerformance", "--topic", topic, *address, "--num-records", str(records), "--timeout", "60000")
    last = said.strip().splitlines()[-1].split(", ")
    if int(last[4]) < records:
        sys.exit(f"{side.broker.name}: read {last[4]} of {records} records of {topic}")
    return float(last[3])


def handshakes(port: int) -> float:
    """Whole ones in a second."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    counts, begun_s = [0] * HANDSHAKING_THREADS, time.monotonic()
    deadline_s = begun_s + HANDSHAKING_S

    def work(number: int) -> None:
        while time.monotonic() < deadline_s:
            with socket.create_connection(("127.0.0.1", port), 30) as plain, context.wrap_socket(plain):
                counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(HANDSHAKING_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - begun_s)


def costing(side: Secured, name: str, work: Callable[[], float], units: float) -> None:
    """The figure, and the broker's CPU for it in milliseconds for each of so many units."""
    before_s = side.cpu_s()
    found = work()
    side.note(name, found)
    side.note(f"{name}, CPU", (side.cpu_s() - before_s) * 1_000 / (units or found * HANDSHAKING_S))


def measure(side: Secured, records: int) -> None:
    for topic, size, _ in (SMALL, LARGE):
        count = records * 3 if size == SMALL[1] else records
        megabytes = count * size / (1 << 20)
        costing(
            side,
            f"produce {size} B",
            lambda topic=topic, count=count, size=size: produce(side, topic, count, size),
            megabytes,
        )  # type: ignore[misc]
        costing(side, f"consume {size} B", lambda topic=topic, count=count: consume(side, topic, count), megabytes)  # type: ignore[misc]
    costing(side, "handshakes", lambda: handshakes(side.ports.tls), 0)


def unit_of(name: str) -> str:
    if name.endswith("CPU"):
        return "ms each" if name.startswith("handshakes") else "ms/MB"
    return "1/s" if name == "handshakes" else "MB/s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=300_000, help="of 1 KB; three times as many of 100 B")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-secured-") as scratch, both(Path(scratch)) as sides:
        for side in sides:
            for topic, size, partitions in (SMALL, LARGE):
                create(side, topic, partitions)
                produce(side, topic, options.records // 3, size)  # to warm it up
            handshakes(side.ports.tls)
        for number in range(options.rounds):
            for side in sides:
                measure(side, options.records)
                say(f"round {number + 1}, {side.broker.name}: done")
    first, second = (side.figures for side in sides)
    say("| figure | Moldau | Apache Kafka | unit | ratio |\n|---|---|---|---|---|")
    for name, found in first.items():
        ours, theirs = statistics.median(found), statistics.median(second[name])
        ratio = theirs / ours if name.endswith("CPU") else ours / theirs
        say(f"| {name} | {ours:,.2f} | {theirs:,.2f} | {unit_of(name)} | {ratio:.2f} |")
    say(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
