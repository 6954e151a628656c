"""What is asked of a cluster that does not answer, and of commands for its brokers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moldau.cli.verify.clusters import asking
from moldau.cli.verify.clusters.hooks import START, Hooks
from moldau.cli.verify.outcome import Wrong
from moldau.client.cluster import Cluster, NoAnswer, Refused
from moldau.client.listing import EARLIEST, LATEST
from moldau.client.reading import Failed
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

PLACE = TopicPartition("t", 0)


class Silent:
    """A reader that is told nothing, or that its partition gives nothing."""

    event: Failed | None = None

    def __init__(self, *_: Any, **__: Any) -> None:
        self.positions: dict[TopicPartition, int] = {}

    def add(self, positions: Mapping[TopicPartition, int]) -> None:
        self.positions |= positions

    def next(self, *, timeout_s: float) -> Failed | None:
        assert timeout_s
        if self.event is not None:
            self.positions.pop(self.event.place)
        return self.event

    def close(self) -> None:
        pass


class Refusing(Silent):
    event = Failed(PLACE, int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))


@pytest.mark.parametrize(("reader", "wrong"), [(Silent, NoAnswer), (Refusing, Refused)])
def test_a_log_that_is_not_read_to_its_end_loses_nothing(
    reader: type[Silent], wrong: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each record that was acknowledged and is not among those read is called lost."""
    monkeypatch.setattr(asking, "Reader", reader)
    offsets = {EARLIEST: 0, LATEST: 5}
    monkeypatch.setattr(
        asking, "list_offsets", lambda _, asked, **__: {each: offsets[at] for each, at in asked.items()}
    )
    topic = SimpleNamespace(error_code=0, partitions=[SimpleNamespace(partition_index=0)])
    client = SimpleNamespace(metadata=lambda _: SimpleNamespace(topics=[topic]))
    with pytest.raises(wrong):
        asking.stored_records(cast("Cluster", client), "t")


def test_a_command_that_leaves_a_broker_behind_is_done(tmp_path: Path) -> None:
    """The broker has what the command writes to, and was waited for until the command was given up."""
    file = tmp_path / "pid"
    began_s = time.monotonic()
    Hooks({START: f"sleep 30 & echo $! > {file}; echo broker {{id}} starts"}).do(START, 1)
    took_s = time.monotonic() - began_s
    os.kill(int(file.read_text()), signal.SIGKILL)
    assert took_s < 20


def test_a_command_that_fails_is_told_with_its_last_words() -> None:
    with pytest.raises(Wrong, match=r"--start-broker ended with 3 for broker 7: no such unit$"):
        Hooks({START: "echo starting {id}; echo no such unit >&2; exit 3"}).do(START, 7)
