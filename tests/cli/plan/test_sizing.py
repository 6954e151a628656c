"""From a load and figures to a plan."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.cli.plan.figures import ASSUMED, MB, Figures, Measured, cache_path, load_measured, save_measured
from moldau.cli.plan.reasons import create_line, rows_of
from moldau.cli.plan.sizing import TooLarge, Wanted, plan_for, segment

GB, TB = 10**9, 10**12
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
BOOK = Wanted(write=GB, read=GB, peak=1.0, retention_ms=7 * DAY_MS, replication=3, headroom=0.3)
FAST = Figures(producer=GB, consumer=GB, broker=100 * GB, disk=100 * GB, network=100 * GB)


def test_the_example_of_the_book() -> None:
    """1 GB/s with consumers of 50 MB/s each."""
    plan = plan_for(BOOK, ASSUMED)
    assert (plan.partitions_by_rule, plan.partitions, plan.brokers) == (20, 20, 10)


@pytest.mark.parametrize(
    ("throughput", "producer", "consumer", "partitions"),
    [
        (GB, 100 * MB, 50 * MB, 20),
        (GB, 25 * MB, 50 * MB, 40),
        (GB + 1, 100 * MB, 50 * MB, 21),
        (10 * MB, 100 * MB, 50 * MB, 1),
        (1, 100 * MB, 50 * MB, 1),
    ],
)
def test_the_slower_side_decides(throughput: int, producer: int, consumer: int, partitions: int) -> None:
    figures = replace(FAST, producer=producer, consumer=consumer)
    plan = plan_for(replace(BOOK, write=throughput, replication=1, brokers=1), figures)
    assert plan.partitions_by_rule == plan.partitions == partitions


@pytest.mark.parametrize(("brokers", "partitions"), [(1, 20), (3, 21), (4, 20), (6, 24), (7, 21), (30, 30)])
def test_partitions_are_a_multiple_of_brokers(brokers: int, partitions: int) -> None:
    assert plan_for(replace(BOOK, brokers=brokers), ASSUMED).partitions == partitions


def needs(wanted: Wanted, figures: Figures) -> dict[str, int]:
    return {each.what: each.brokers for each in plan_for(wanted, figures).needs}


NEED_CASES = [
    # 3 GB/s over what 70 % of each can do, and one broker more.
    (BOOK, replace(FAST, disk=500 * MB), "disk", 10),
    (BOOK, replace(FAST, network=1_250 * MB), "network in", 5),
    (BOOK, replace(FAST, broker=300 * MB), "CPU", 16),
    (replace(BOOK, read=10 * GB), replace(FAST, network=1_250 * MB), "network out", 15),
    (replace(BOOK, peak=2.0), replace(FAST, disk=500 * MB), "disk", 19),
    (replace(BOOK, headroom=0.0), replace(FAST, disk=500 * MB), "disk", 7),
    (replace(BOOK, replication=1), replace(FAST, disk=500 * MB), "disk", 3),
    (BOOK, FAST, "replicas", 3),
    (replace(BOOK, replication=5), FAST, "replicas", 5),
]


@pytest.mark.parametrize(("wanted", "figures", "what", "brokers"), NEED_CASES)
def test_what_asks_for_brokers(wanted: Wanted, figures: Figures, what: str, brokers: int) -> None:
    assert needs(wanted, figures)[what] == brokers
    assert plan_for(wanted, figures).brokers == max(needs(wanted, figures).values())


def test_disk_network_and_memory_of_a_broker() -> None:
    plan = plan_for(replace(BOOK, write=100 * MB, read=200 * MB, peak=2.0, brokers=5, headroom=0.5), ASSUMED)
    assert plan.disk_per_broker == pytest.approx(100 * MB * 7 * 86_400 * 3 / 5 / 0.5), "space is of the average"
    assert plan.network_in == pytest.approx(2 * 100 * MB * 3 / 5), "the network is of the peak"
    assert plan.network_out == pytest.approx(2 * (200 + 200) * MB / 5)
    assert plan.memory_per_broker == pytest.approx(GB + 30 * plan.network_in)
    assert plan.partition_per_day == pytest.approx(100 * MB * 86_400 / plan.partitions)


def test_one_replica_needs_no_spare_and_promises_less() -> None:
    plan = plan_for(replace(BOOK, write=MB, read=MB, replication=1), ASSUMED)
    assert (plan.brokers, plan.min_in_sync) == (1, 1)
    assert plan_for(replace(BOOK, write=MB, replication=2), ASSUMED).min_in_sync == 1
    assert plan_for(replace(BOOK, write=MB), ASSUMED).min_in_sync == 2


def test_brokers_that_are_processes_share_machines() -> None:
    plan = plan_for(BOOK, replace(FAST, broker=300 * MB))
    assert (plan.brokers, plan.machines) == (16, 3)
    (row,) = [each for each in rows_of(plan, BOOK, FAST) if each.what == "machines"]
    assert "moldau start --brokers 6" in row.why
    assert not [each for each in rows_of(plan_for(BOOK, ASSUMED), BOOK, ASSUMED) if each.what == "machines"]


def test_a_given_number_that_is_too_small_is_told() -> None:
    assert plan_for(replace(BOOK, brokers=5), ASSUMED).is_short_of_brokers
    assert not plan_for(replace(BOOK, brokers=10), ASSUMED).is_short_of_brokers


def test_too_much_for_one_cluster() -> None:
    with pytest.raises(TooLarge, match="split the load"):
        plan_for(replace(BOOK, write=1_000 * TB), ASSUMED)


@pytest.mark.parametrize(
    ("bytes_per_s", "retention_ms", "size", "roll_ms"),
    [
        (50 * MB, 7 * DAY_MS, 1 << 30, 7 * DAY_MS // 20),
        (1_000, 7 * DAY_MS, 1 << 24, 7 * DAY_MS // 20),
        (100_000, DAY_MS, 1 << 28, DAY_MS // 20),
        (0.001, HOUR_MS, 1 << 24, HOUR_MS // 20),
        (1, 60_000, 1 << 24, 60_000),
        (10 * MB, 365 * DAY_MS, 1 << 30, 7 * DAY_MS),
    ],
)
def test_segments_fit_retention(bytes_per_s: float, retention_ms: int, size: int, roll_ms: int) -> None:
    assert segment(bytes_per_s, retention_ms) == (size, roll_ms)


def test_each_number_has_a_reason() -> None:
    rows = rows_of(plan_for(BOOK, ASSUMED), BOOK, ASSUMED)
    assert all(each.why and each.value for each in rows)
    assert rows[0].why.startswith("max(T/p, T/c) = max(1 GB/s / 100 MB/s, 1 GB/s / 50 MB/s)")
    (size,) = [each for each in rows if each.what == "partition per day"]
    assert "14,400 partitions" in size.why


def test_the_command_creates_what_was_planned() -> None:
    line = create_line(plan_for(BOOK, ASSUMED), BOOK, "orders")
    assert line == (
        "moldau topics create orders --partitions 20 --replication-factor 3 --config retention.ms=604800000"
        " --config min.insync.replicas=2 --config segment.bytes=1073741824 --config segment.ms=30240000"
    )


MEASURED = Measured(2.0 * MB, 3.0 * MB, 4.0 * MB, 1_000, "vm, 2 cores", "2026-01-31 12:00 UTC")


def test_what_was_measured_is_kept(tmp_path: Path) -> None:
    path = cache_path({"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert load_measured(path) is None
    save_measured(path, MEASURED)
    assert load_measured(path) == MEASURED
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"producer": "x"}', "\0", json.dumps({"producer": 1})])
def test_a_file_of_another_make_is_no_measurement(tmp_path: Path, text: str) -> None:
    path = tmp_path / "figures.json"
    path.write_text(text)
    assert load_measured(path) is None


def test_a_measurement_without_speed_is_none(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    save_measured(path, replace(MEASURED, disk=0.0))
    assert load_measured(path) is None
