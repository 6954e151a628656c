"""Byte-compatible files: Apache Kafka's tool reads our folders, and we serve a folder that Apache Kafka wrote."""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

import moldau
from tests import apache_kafka
from tests.apache_kafka import ApacheKafka
from tests.faults.clients import Stored, create_topic, read_partition

pytestmark = pytest.mark.skipif(
    not apache_kafka.available(), reason="Apache Kafka needs java, and Maven the first time"
)

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SMALL_SEGMENTS = {"segment.bytes": "1048576", "index.interval.bytes": "2000"}
EAGER_CLEANER = {"log.cleaner.backoff.ms": "100"}
MIXED, KEYED = "mixed", "keyed"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
WAIT_S_MAX = 60.0


def fill_mixed(bootstrap: str) -> None:
    """Every codec, with and without idempotence, keys, headers and null values, over several segments."""
    create_topic(bootstrap, MIXED, config=SMALL_SEGMENTS)
    noise = random.Random(1874)
    moment = int(time.time() * 1000) - 100_000
    for turn, codec in enumerate(CODECS):
        for idempotent in (False, True):
            settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": idempotent}
            producer = Producer(settings | {"batch.num.messages": 7})
            for number in range(300):
                key = None if number % 5 == 0 else b"key %d" % number
                value = None if number % 11 == 0 else b"%d " % number + noise.randbytes(700) + bytes(600)
                headers = [("turn", b"%d" % turn), ("empty", b"")] if number % 3 == 0 else None
                producer.produce(MIXED, value, key=key, headers=headers, timestamp=moment + turn * 1_000 + number)
            assert producer.flush(WAIT_S_MAX) == 0


def fill_keyed(bootstrap: str) -> None:
    compacting = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"}
    create_topic(bootstrap, KEYED, config=compacting)
    for codec in ("none", "zstd"):
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20})
        for number in range(1_000):
            producer.produce(KEYED, b"value %d" % number, key=b"key %d" % (number % 10))
        producer.flush(WAIT_S_MAX)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline, f"waited {WAIT_S_MAX} s for {what}"
        time.sleep(0.05)


def compact(bootstrap: str, folder: Path) -> None:
    """Segments roll by time when something is appended; then the cleaner may take all but the active one."""
    first = folder / "00000000000000000000.log"
    full_bytes = first.stat().st_size

    def cleaned() -> bool:
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(KEYED, b"nudge", key=b"nudge")
        producer.flush(WAIT_S_MAX)
        try:
            return first.stat().st_size < full_bytes / 4
        except FileNotFoundError:  # Apache Kafka's cleaner is between its two renames
            return False

    until(cleaned, "compaction")


def dump(*files: Path, arguments: tuple[str, ...]) -> str:
    done = apache_kafka.tool(DUMP, "--files", ",".join(map(str, files)), *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def our_folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Stored]]]:
    """A log directory after a clean stop, and what clients read from it before."""
    data_dir = tmp_path_factory.mktemp("moldau")
    with moldau.run(data_dir=data_dir, overrides=EAGER_CLEANER) as broker:
        bootstrap = broker.bootstrap_servers
        fill_mixed(bootstrap)
        fill_keyed(bootstrap)
        compact(bootstrap, data_dir / f"{KEYED}-0")
        read = {topic: read_partition(bootstrap, topic) for topic in (MIXED, KEYED)}
    return data_dir, read


@pytest.mark.parametrize("topic", [MIXED, KEYED])
def test_apache_kafka_reads_our_records(our_folder: tuple[Path, dict[str, list[Stored]]], topic: str) -> None:
    data_dir, read = our_folder
    logs = sorted((data_dir / f"{topic}-0").glob("*.log"))
    assert topic == KEYED or len(logs) > 2, "segments rolled"
    printed = dump(*logs, arguments=("--print-data-log", "--deep-iteration"))
    assert "isvalid: false" not in printed
    assert [int(found) for found in re.findall(r"^\| offset: (\d+)", printed, re.MULTILINE)] == [
        one.offset for one in read[topic]
    ]


@pytest.mark.parametrize("topic", [MIXED, KEYED])
def test_apache_kafka_finds_our_indexes_sound(our_folder: tuple[Path, dict[str, list[Stored]]], topic: str) -> None:
    folder = our_folder[0] / f"{topic}-0"
    indexes = sorted((*folder.glob("*.index"), *folder.glob("*.timeindex")))
    printed = dump(*indexes, arguments=("--index-sanity-check",))
    assert len(re.findall(r"passed sanity check|is empty", printed)) == len(indexes), printed
    checked = dump(*indexes, arguments=("--verify-index-only",))
    assert not re.search(r"Mismatch|mismatch|out of order|Exception", checked), checked


def test_apache_kafka_reads_our_snapshots(our_folder: tuple[Path, dict[str, list[Stored]]]) -> None:
    snapshots = sorted((our_folder[0] / f"{MIXED}-0").glob("*.snapshot"))
    assert snapshots
    printed = dump(*snapshots, arguments=())
    assert "producerId" in printed
    assert "Exception" not in printed


def test_we_serve_a_folder_that_apache_kafka_wrote(tmp_path: Path) -> None:
    with ApacheKafka(directory=tmp_path / "apache", properties=EAGER_CLEANER) as apache:
        fill_mixed(apache.bootstrap)
        fill_keyed(apache.bootstrap)
        compact(apache.bootstrap, apache.data_directory / f"{KEYED}-0")
        written = {topic: read_partition(apache.bootstrap, topic) for topic in (MIXED, KEYED)}
        data = apache.data_directory
    ours = tmp_path / "ours"
    with moldau.run(data_dir=ours) as broker:
        for topic in (MIXED, KEYED):
            create_topic(broker.bootstrap_servers, topic, config=SMALL_SEGMENTS)
    for topic in (MIXED, KEYED):
        take_over(data / f"{topic}-0", ours / f"{topic}-0")
    with moldau.run(data_dir=ours) as broker:
        for topic, records in written.items():
            assert read_partition(broker.bootstrap_servers, topic) == records


def take_over(theirs: Path, ours: Path) -> None:
    """Their files in our folder; the topic's id, which is ours to give, stays."""
    for path in ours.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in theirs.iterdir():
        if path.name != "partition.metadata":
            shutil.copy2(path, ours / path.name)
