"""What is lost is said exactly."""

from __future__ import annotations

import pytest

from moldau.core.ids import TopicPartition
from moldau.spark.reading.data_loss import DataLossError, Loss, losses_between, raise_or_warn, report

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


def spans(losses: list[Loss]) -> list[tuple[TopicPartition, int, int]]:
    return [(loss.place, loss.start, loss.end) for loss in losses]


def test_nothing_is_lost_while_everything_is_there() -> None:
    assert losses_between({A: 5}, {A: 9}, earliest={A: 5}) == []


def test_deleted_before_it_was_read() -> None:
    assert spans(losses_between({A: 5}, {A: 9}, earliest={A: 7})) == [(A, 5, 7)]
    assert spans(losses_between({A: 5}, {A: 9}, earliest={A: 20})) == [(A, 5, 9)]


def test_a_topic_made_anew_ends_before_the_query_began() -> None:
    assert spans(losses_between({A: 50}, {A: 9}, earliest={A: 0})) == [(A, 9, 50)]


def test_a_partition_that_is_gone_or_begins_late() -> None:
    assert spans(losses_between({A: 5}, {}, earliest={})) == [(A, 5, 6)]
    assert spans(losses_between({}, {B: 9}, earliest={B: 3}, appeared=[B])) == [(B, 0, 3)]


def test_an_idle_partition_loses_nothing_to_retention() -> None:
    assert losses_between({A: 5}, {A: 5}, earliest={A: 5}) == []


def test_the_report_names_all_of_it() -> None:
    losses = [Loss(A, 1, 4, "deleted"), Loss(B, 7, 8, "deleted")]
    told = report(losses)
    assert "up to 4 records in all" in told
    assert "\n" not in told
    assert "topic 'orders' partition 0: offsets 1 to 3, up to 3 records (deleted)" in told
    assert "partition 1: offsets 7 to 7, up to 1 record (deleted)" in told
    with pytest.raises(DataLossError, match="failOnDataLoss is true"):
        raise_or_warn(losses, fail=True)


def test_a_warning_instead(caplog: pytest.LogCaptureFixture) -> None:
    raise_or_warn([Loss(A, 1, 4, "deleted")], fail=False)
    assert "offsets 1 to 3" in caplog.text
