"""Performance tools: their lines parse as Apache Kafka's do, and what they say is so."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from moldau.cli.kafka.performance.dates import shown
from moldau.cli.kafka.performance.statistics import Statistics
from tests.cli.conftest import Tool

Done = Callable[..., str]

NUMBER = r"(\d+(?:\.\d+)?)"
TOTAL = re.compile(
    rf"(\d+)( steady state)? records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), {NUMBER} ms avg latency,"
    rf" {NUMBER} ms max latency, (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th, (\d+) ms 99.9th\."
)
WINDOW = re.compile(
    rf"(\d+) records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), {NUMBER} ms avg latency, {NUMBER} ms max latency\."
)
HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms,"
    " fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


def produced(done: Done, topic: str, *options: str) -> list[str]:
    return done("producer-perf", "--topic", topic, "--throughput", "-1", *options).splitlines()


def test_what_was_sent_is_read(done: Done, topic: str) -> None:
    (line,) = produced(done, topic, "--num-records", "20000", "--record-size", "50")
    found = TOTAL.fullmatch(line)
    assert found is not None, line
    assert found[1] == "20000"
    assert int(found[7]) <= int(found[8]) <= int(found[9]) <= int(found[10]) <= float(found[6])
    header, row = done("consumer-perf", "--topic", topic, "--num-records", "20000").splitlines()
    cells = row.split(", ")
    assert (header, len(cells)) == (HEADER, 10)
    assert (cells[2], cells[4]) == (f"{20_000 * 50 / 2**20:.4f}", "20000")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", cells[0])


def test_warm_up_windows_and_a_rate(done: Done, topic: str) -> None:
    lines = done(
        *("producer-perf", "--topic", topic, "--num-records", "900", "--record-size", "10", "--throughput", "600"),
        *("--warmup-records", "600", "--reporting-interval", "200", "--command-property", "acks=1", "linger.ms=0"),
    ).splitlines()
    assert lines[0] == ("Warmup first 600 records. Steady state results will print after the complete test summary.")
    windows = [found for line in lines if (found := WINDOW.fullmatch(line))]
    assert windows
    assert "In steady state." in lines
    whole, steady = (TOTAL.fullmatch(line) for line in lines[-2:])
    assert whole is not None
    assert steady is not None
    assert (whole[1], steady[1], steady[2]) == ("900", "300", " steady state")
    assert float(whole[3]) < 620


def test_lines_of_a_file_and_numbers_in_transactions(done: Done, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("eins;zwei;drei")
    lines = produced(done, topic, "--num-records", "50", "--payload-file", str(path), "--payload-delimiter", ";")
    assert lines[:2] == [f"Reading payloads from: {path}", "Number of messages read: 3"]
    produced(done, topic, "--num-records", "30", "--payload-monotonic", "--transactional-id", topic)
    read = done("consume", topic, "--from-beginning", "-e").splitlines()
    assert set(read) == {"eins", "zwei", "drei", *(str(n) for n in range(30))}
    assert len(read) == 80


def committed(tool: Tool, group: str) -> int:
    """Of all partitions, as the group's lag is told."""
    rows = tool("consumer-groups", "--describe", "--group", group).stdout.strip().splitlines()
    at = rows[0].split().index("CURRENT-OFFSET")
    return sum(int(row.split()[at]) for row in rows[1:])


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "zstd"])
def test_a_group_goes_on_behind_what_was_counted(done: Done, tool: Tool, topic: str, codec: str) -> None:
    produced(
        done, topic, "--num-records", "1000", "--record-size", "20", "--command-property", f"compression.type={codec}"
    )
    read = ("consumer-perf", "--topic", topic, "--group", topic, "--hide-header", "--timeout", "1000")
    counts = []
    for count in ("700", "300"):
        (row,) = done(*read, "--num-records", count).splitlines()
        counts.append(row.split(", ")[2:5:2])
        assert committed(tool, topic) == sum(int(each) for _, each in counts)
    assert counts == [[f"{each * 20 / 2**20:.4f}", str(each)] for each in (700, 300)]
    _, row = done(*read, "--num-records", "1").splitlines()
    assert row.split(", ")[4] == "0"


def test_markers_are_not_counted_and_aborted_records_only_if_they_are_asked_for(
    done: Done, bootstrap: str, topic: str
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(20)
    for ending in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for _ in range(10):
            producer.produce(topic, b"12345", b"key", partition=0)
        assert producer.flush(20) == 0, "what was not sent is not there to be aborted"
        ending(20)
    read = ("consumer-perf", "--topic", topic, "--num-records", "99", "--timeout", "1000", "--hide-header")
    for isolation, records in (("read_uncommitted", 20), ("read_committed", 10)):
        row = done(*read, "--command-property", f"isolation.level={isolation}").splitlines()[-1].split(", ")
        assert (row[2], row[4]) == (f"{records * 8 / 2**20:.4f}", str(records))


def test_details_and_no_header(done: Done, topic: str) -> None:
    produced(done, topic, "--num-records", "3000", "--record-size", "10")
    told = done(
        *("consumer-perf", "--include", f"{topic}.*", "--num-records", "3000", "--show-detailed-stats"),
        *("--reporting-interval", "1", "--date-format", "HH:mm", "--group", topic),
    )
    header, *rows = told.splitlines()
    assert header == HEADER.replace("start.time, end.time", "time, threadId")
    assert re.fullmatch(r"\d\d:\d\d, 0, .*", rows[0])
    assert rows[-1].split(", ")[4] == "3000"


def test_a_topic_with_too_little_ends_with_a_warning(done: Done, topic: str) -> None:
    lines = done(
        "consumer-perf", "--topic", topic, "--num-records", "5", "--timeout", "300", "--hide-header", "--print-metrics"
    ).splitlines()
    assert lines[0] == (
        "WARNING: Exiting before consuming the expected number of records: timeout (300 ms) exceeded."
        " You can use the --timeout option to increase the timeout."
    )
    assert lines[1].split(", ")[4] == "0"
    assert "Metric Name" in "\n".join(lines)


def test_a_record_that_is_too_large_is_counted_as_not_delivered(tool: Tool, topic: str) -> None:
    finished = tool(
        *("producer-perf", "--topic", topic, "--num-records", "2", "--record-size", "2000000", "--throughput", "-1")
    )
    assert finished.returncode == 1
    assert finished.stderr.startswith("moldau producer-perf: 2 records were not delivered: ")


def test_percentiles_are_of_every_record(capsys: pytest.CaptureFixture[str]) -> None:
    statistics = Statistics(5_000)
    for latency in range(1_000):
        statistics.acknowledged(latency, 10, 0.0)
    statistics.print_total()
    printed = capsys.readouterr().out
    assert (
        "499.50 ms avg latency, 999.00 ms max latency, 500 ms 50th, 950 ms 95th, 990 ms 99th, 999 ms 99.9th" in printed
    )


def test_dates_as_java_shows_them() -> None:
    assert re.fullmatch(r"'?\d\d \w{3} at \d\d\.\d{3}", shown(0.25, "yy MMM 'at' ss.SSS"))


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (("producer-perf", "--topic", "t"), 2, "required: --num-records"),
        (("producer-perf", "--topic", "t", "--num-records", "5", "--throughput", "-1"), 2, "one of the arguments"),
        (
            ("producer-perf", "--topic", "t", "--num-records", "0", "--record-size", "5", "--throughput", "-1"),
            2,
            "'0' is no number",
        ),
        (
            ("producer-perf", "--topic", "t", "--num-records", "1", "--record-size", "5", "--throughput", "0"),
            2,
            "'0' is no rate",
        ),
        (
            ("producer-perf", "--topic", "t", "--num-records", "1", "--payload-file", "/none", "--throughput", "-1"),
            2,
            "cannot read /none",
        ),
        (
            ("producer-perf", "--topic", "a/b", "--num-records", "1", "--record-size", "5", "--throughput", "-1"),
            1,
            "topic 'a/b'",
        ),
        (("consumer-perf", "--num-records", "5"), 2, "one of the arguments --topic --include is required"),
        (("consumer-perf", "--topic", "none-such", "--num-records", "1", "--timeout", "900000"), 1, "none-such"),
        (("consumer-perf", "--topic", "t", "--num-records", "1", "--date-format", "QQ"), 2, "QQ is not known"),
        (("consumer-perf", "--topic", "t", "--num-records", "1", "-b", "127.0.0.1:1"), 1, "no broker answers"),
    ],
)
def test_bad_use(tool: Tool, words: tuple[str, ...], exit_code: int, said: str) -> None:
    finished = tool(*words)
    assert finished.returncode == exit_code
    assert said in finished.stderr
    assert len(finished.stderr.splitlines()) == 1


def test_latency_of_records_one_by_one(done: Done, tool: Tool, moldau_topic: str) -> None:
    told = done(
        *(
            "e2e-latency",
            "--topic",
            moldau_topic,
            "--num-records",
            "20",
            "--producer-acks",
            "all",
            "--record-size",
            "9",
        ),
        *("--record-key-size", "3", "--num-headers", "2", "--record-header-key-size", "2", "--record-header-size", "4"),
    ).splitlines()
    assert told[0] == (
        f'Topic "{moldau_topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1'
    )
    assert re.fullmatch(r"0\t\d+\.\d+", told[1])
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", told[2])
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+", told[3])
    finished = tool("e2e-latency", "localhost:9092", moldau_topic, "5")
    assert (finished.returncode, len(finished.stderr.splitlines())) == (2, 1)
    assert "Expected 5 or 6 positional arguments, but got 3" in finished.stderr
