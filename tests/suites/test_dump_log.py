"""`moldau dump-log` beside Apache Kafka's DumpLogSegments, over what brokers of both kinds leave on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

import moldau
from moldau.cli.kafka.dump_log.command import main
from tests.apache_kafka import ApacheKafka
from tests.clients.drivers import LineProcess
from tests.faults.clients import create_topic
from tests.suites.tools import DUMP_LOG

pytestmark = pytest.mark.xdist_group("dump-log")

SEGMENT_BYTES = 1 << 20  # Apache Kafka takes no less
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
READ_S_MAX = 30.0
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
FALSE_GAP = "  -1 is followed by "


@contextmanager
def broker(kind: str, folder: Path) -> Iterator[str]:
    if kind == "moldau":
        with moldau.run(data_dir=folder / "data") as ours:
            yield ours.bootstrap_servers
    else:
        with ApacheKafka(directory=folder) as theirs:
            yield theirs.bootstrap


def fill(bootstrap: str) -> None:
    """Every codec, headers, tombstones, transactions that end well and that do not, segments, and two groups."""
    create_topic(bootstrap, "mixed")
    create_topic(bootstrap, "long", config={"segment.bytes": str(SEGMENT_BYTES)})
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True})
        for n in range(40):
            headers = [("one", b"x"), ("twö", None)] if n % 5 == 0 else []
            value = None if n % 7 == 0 else f"välue {n} ".encode() * 5
            producer.produce("mixed", value, None if n % 3 else f"k{n}", headers=headers, timestamp=1_000_000 + n)
        assert producer.flush(READ_S_MAX) == 0
    for _ in range(60):
        producer.produce("long", os.urandom(20_000).hex(), "key")
        assert producer.flush(READ_S_MAX) == 0
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "mové"})
    transactional.init_transactions()
    for end in (transactional.commit_transaction, transactional.abort_transaction):
        transactional.begin_transaction()
        transactional.produce("mixed", b"in a transaction")
        transactional.flush()
        end()
    for protocol in ("classic", "consumer"):
        read(bootstrap, protocol)


def read(bootstrap: str, protocol: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": protocol, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "group.protocol": protocol, "enable.auto.commit": False})
    consumer.subscribe(["mixed"])
    assert consumer.consume(100, READ_S_MAX)
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.fixture(scope="module", params=["moldau", "apache"])
def data(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory of a broker of that kind, after it was stopped."""
    folder = tmp_path_factory.mktemp(request.param)
    with broker(request.param, folder) as bootstrap:
        fill(bootstrap)
    return folder / "data"


Compare = Callable[..., tuple[list[str], list[str]]]


@pytest.fixture
def both(tool_process: LineProcess, capfd: pytest.CaptureFixture[str]) -> Compare:
    """What both tools print, on standard output and on standard error; theirs first."""

    def compare(*arguments: str) -> tuple[list[str], list[str]]:
        theirs = tool_process.ask({"class": DUMP_LOG, "args": list(arguments), "stdin": ""})
        capfd.readouterr()
        assert main([*arguments]) == int(theirs["exit"])
        ours = capfd.readouterr()
        assert ours.err.splitlines() == without_false_gaps(str(theirs["err"]))
        return str(theirs["out"]).splitlines(), ours.out.splitlines()

    return compare


def without_false_gaps(told: str) -> list[str]:
    """Their tool says of each segment but the first that -1 comes before it; and its logging is not its own."""
    lines = [line for line in told.splitlines() if "SLF4J" not in line and not line.startswith(FALSE_GAP)]
    followed = [*lines[1:], ""][: len(lines)]
    return [
        line
        for line, after in zip(lines, followed, strict=True)
        if not line.startswith("Non-consecutive") or after.startswith(" ")
    ]


def files(folder: Path, pattern: str) -> str:
    found = [path for path in sorted(folder.glob(f"{pattern}/*")) if path.suffix in SUFFIXES]
    assert found
    return ",".join(str(path) for path in found)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--print-data-log",),
        ("--print-data-log", "--skip-record-metadata", "--verify-index-only"),
        ("--index-sanity-check",),
        ("--max-bytes", "2000"),
        ("--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder", "--key-decoder-class"),
    ],
    ids=lambda options: " ".join(options) or "batches",
)
def test_logs_and_indexes(data: Path, both: Compare, options: tuple[str, ...]) -> None:
    pattern = "long-0" if "--value-decoder-class" in options else "[lm]*-0"
    theirs, ours = both(*options, "--files", files(data, pattern))
    assert ours == theirs
    assert len(ours) > 10


def test_groups_and_transactions(data: Path, both: Compare) -> None:
    for decoder, topic in (("offsets", "__consumer_offsets"), ("transaction-log", "__transaction_state")):
        theirs, ours = both(f"--{decoder}-decoder", "--files", files(data, f"{topic}-*"))
        assert ours == theirs
        assert any(" payload: {" in line for line in ours)


def test_the_quorum(data: Path, both: Compare) -> None:
    if not (data / "__cluster_metadata-0").exists():
        pytest.skip("only Apache Kafka has one")
    theirs, ours = both("--cluster-metadata-decoder", "--files", files(data, "__cluster_metadata-0"))
    assert ours == theirs
    assert any('"type":"PARTITION_RECORD"' in line for line in ours)


@pytest.mark.parametrize("kept", [-1, -100])
def test_a_log_that_was_cut(data: Path, both: Compare, tmp_path: Path, kept: int) -> None:
    """Theirs ends with 0; ours says where."""
    whole = sorted((data / "mixed-0").glob("*.log"))[0]
    cut = tmp_path / whole.name
    cut.write_bytes(whole.read_bytes()[:kept])
    with pytest.raises(AssertionError, match="1 == 0"):
        both("--files", str(cut))
