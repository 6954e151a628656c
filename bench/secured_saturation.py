"""What a broker can take over TLS when the client costs next to nothing: ready-made requests beside Apache Kafka.

    python -m bench.secured_saturation                          everything, three rounds (about 3 minutes on two cores)
    python -m bench.secured_saturation --rounds 1 --seconds 2   a quick try

Apache's own clients need more CPU for TLS than either broker (`bench.secured`), so that with them on the same two cores
the broker hardly shows. Here it has the first core to itself and the load the second one. Requests go over TLS 1.3,
without a login, from four connections with several under way on each; acks=all. A ratio above 1.00 is better than
Apache Kafka.
"""

from __future__ import annotations

import argparse
import os
import socket
import ssl
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.secured import Secured, both, create
from bench.stalls import say
from moldau.wire.codec import encode_parts, is_flexible
from moldau.wire.frame import RequestHeader, request_parts
from moldau.wire.messages import FetchRequest, ProduceRequest
from moldau.wire.messages.fetch import FetchPartition, FetchTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from moldau.wire.schema import Message
from tests.differential.batches import batch

CONNECTIONS = 4
UNDER_WAY = 4
RECORD_BYTES = 1_000
PRODUCES = {"produce-16k": 16, "produce-128k": 128}
FETCH = "fetch-1m"
FETCH_BYTES = 1 << 20
PRODUCE_VERSION, FETCH_VERSION = 9, 11
ANSWER_S_MAX = 60.0


def frame(request: Message, version: int) -> bytes:
    header = RequestHeader(request.API_KEY, version, 7, "load")
    return b"".join(
        request_parts(header, encode_parts(request, version), is_flexible=is_flexible(type(request), version))
    )


def produce_frame(topic: str, partition: int, records: int) -> bytes:
    values = [os.urandom(RECORD_BYTES) for _ in range(records)]
    data = PartitionProduceData(index=partition, records=batch(values, timestamp=int(time.time() * 1_000)))
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return frame(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics), PRODUCE_VERSION)


def fetch_frame(topic: str, partition: int) -> bytes:
    wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=FETCH_BYTES)
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    return frame(FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=FETCH_BYTES, topics=topics), FETCH_VERSION)


class Load:
    """One connection with some requests under way: as many answers as it got, and their bytes."""

    def __init__(self, port: int, request: bytes) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._socket = context.wrap_socket(socket.create_connection(("127.0.0.1", port), ANSWER_S_MAX))
        self._request = request
        self._buffer = memoryview(bytearray(2 * FETCH_BYTES))
        self.answers = self.bytes = 0

    def run(self, deadline_s: float) -> None:
        for _ in range(UNDER_WAY):
            self._socket.sendall(self._request)
        under_way = UNDER_WAY
        while under_way:
            self.bytes += self._answer()
            self.answers += 1
            if time.monotonic() < deadline_s:
                self._socket.sendall(self._request)
            else:
                under_way -= 1
        self._socket.close()

    def _answer(self) -> int:
        size = int.from_bytes(self._exactly(4), "big")
        self._exactly(size)
        return size

    def _exactly(self, size: int) -> memoryview:
        at = 0
        while at < size:
            count = self._socket.recv_into(self._buffer[at:size])
            if not count:
                raise ConnectionError("the broker hung up")
            at += count
        return self._buffer[:size]


def saturated(side: Secured, name: str, requests: list[bytes], sent_bytes: int, seconds: float) -> None:
    """So many MB of records in a second, and the broker's CPU for each; an answer's own size where none are sent."""
    loads = [Load(side.ports.tls, request) for request in requests]
    before_s, begun_s = side.cpu_s(), time.monotonic()
    threads = [threading.Thread(target=load.run, args=(begun_s + seconds,)) for load in loads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.monotonic() - begun_s
    answers = sum(load.answers for load in loads)
    megabytes = (answers * sent_bytes or sum(load.bytes for load in loads)) / (1 << 20)
    if not sent_bytes and megabytes < answers / 2:
        raise RuntimeError(f"{side.broker.name}: {answers} answers to fetches hold {megabytes:.0f} MB")
    side.note(name, megabytes / took_s)
    side.note(f"{name}, CPU", (side.cpu_s() - before_s) * 1_000 / megabytes)


def measures(side: Secured, seconds: float) -> list[Callable[[], None]]:
    """Each measures one figure; those of Fetch come last, when there is something to read."""
    found: list[Callable[[], None]] = []
    for name, records in PRODUCES.items():
        frames = [produce_frame(name, number, records) for number in range(CONNECTIONS)]
        size = records * RECORD_BYTES
        found.append(lambda name=name, frames=frames, size=size: saturated(side, name, frames, size, seconds))  # type: ignore[misc]
    fetches = [fetch_frame("produce-128k", number) for number in range(CONNECTIONS)]
    found.append(lambda: saturated(side, FETCH, fetches, 0, seconds))
    return found


def pin(side: Secured) -> None:
    """Every thread of the broker to the first core."""
    assert side.broker.process is not None
    for thread in Path(f"/proc/{side.broker.process.pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {0})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0, help="for each figure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-secured-") as scratch, both(Path(scratch)) as sides:
        for side in sides:
            for topic in PRODUCES:
                create(side, topic, CONNECTIONS)
            pin(side)
        os.sched_setaffinity(0, {1})
        work = [(side, measures(side, options.seconds)) for side in sides]
        for side, each in work:
            for measure in each:  # a JVM compiles as it goes
                measure()
            side.figures.clear()
        for number in range(options.rounds):
            for side, each in work:
                for measure in each:
                    measure()
                say(f"round {number + 1}, {side.broker.name}: done")
    first, second = (side.figures for side in sides)
    say("| figure | Moldau | Apache Kafka | unit | ratio |\n|---|---|---|---|---|")
    for name, figures in first.items():
        ours, theirs = statistics.median(figures), statistics.median(second[name])
        is_cost = name.endswith("CPU")
        ratio = theirs / ours if is_cost else ours / theirs
        say(f"| {name} | {ours:,.2f} | {theirs:,.2f} | {'ms/MB' if is_cost else 'MB/s'} | {ratio:.2f} |")
    say(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
