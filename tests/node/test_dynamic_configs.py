"""What was changed while brokers ran never keeps a broker from its start, nor from the changes that suit it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from moldau.controller.image import ClusterImage
from moldau.controller.machine import apply
from moldau.controller.records import BrokerConfigsChanged
from moldau.core.config.broker import BrokerConfig
from moldau.node.dynamic_configs import configured

MIB = 1 << 20
BUFFER, THREADS, MAX_BYTES = "log.cleaner.dedupe.buffer.size", "log.cleaner.threads", "message.max.bytes"


def changed(*, for_all: Mapping[str, str] | None = None, own: Mapping[str, str] | None = None) -> ClusterImage:
    records = [BrokerConfigsChanged("", dict(for_all or {})), BrokerConfigsChanged("1", dict(own or {}))]
    return apply(ClusterImage(), records)


def broker(**static: str) -> BrokerConfig:
    return BrokerConfig.of({"node.id": "1", **static})


def test_a_value_for_all_that_does_not_go_with_the_file_is_left_out_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    image = changed(for_all={THREADS: "2", MAX_BYTES: "5000"})
    config = configured(broker(**{BUFFER: str(2 * MIB)}), image)
    assert (config.int(BUFFER), config.int(THREADS), config.int(MAX_BYTES)) == (2 * MIB, 1, 5000)
    (line,) = caplog.messages
    assert line.startswith("log.cleaner.threads=2, which was set for all brokers, does not go with this broker's own")
    assert "at least 1MB per cleaner thread" in line


def test_a_stored_value_that_this_version_refuses_is_left_out() -> None:
    config = configured(broker(), changed(for_all={THREADS: "0", MAX_BYTES: "many"}, own={MAX_BYTES: "6000"}))
    assert (config.int(THREADS), config.int(MAX_BYTES)) == (1, 6000)


def test_what_is_set_for_one_broker_counts_before_what_is_set_for_all() -> None:
    config = configured(broker(), changed(for_all={THREADS: "2"}, own={BUFFER: str(2 * MIB)}))
    assert (config.int(BUFFER), config.int(THREADS)) == (2 * MIB, 1)


def test_values_that_go_only_together_are_taken_together() -> None:
    wanted = {"group.consumer.heartbeat.interval.ms": "40000", "group.consumer.max.heartbeat.interval.ms": "50000"}
    for_all = {**wanted, THREADS: "0"}
    config = configured(broker(), changed(for_all=for_all))
    assert {name: str(config.int(name)) for name in wanted} == wanted
