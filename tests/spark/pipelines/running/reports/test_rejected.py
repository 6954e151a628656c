"""Where a query's tasks note what they could not read, by its plan alone."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from moldau.spark.pipelines.language.grammar import parse
from moldau.spark.pipelines.running.reports.rejected import ANSWER_S_MAX, LOOK_AGAIN_S, RejectedRecords, ledgers_of

PLAN = """
    create stream kept from topic 'kept' with (onError = deadletter);
    create stream skipped from pattern 'skipped.*' with (onError = skip, groupIdPrefix = mine);
    create stream strict from topic 'strict';
    create table names from topic 'names' key (id) with (onError = skip);
    create view v as select * from kept join w;
    create view W as select * from skipped;
    create sink s into console as select * from {reads}
"""


@pytest.mark.parametrize(
    ("reads", "groups"),
    [
        ("kept", {"moldau-spark-p.s.dead-letters"}),
        ("KEPT", {"moldau-spark-p.s.dead-letters"}),
        ("w", {"mine-p.s.skipped"}),
        ("v", {"moldau-spark-p.s.dead-letters", "mine-p.s.skipped"}),
        ("strict", set()),
        ("strict join names", set()),
    ],
)
def test_the_groups_of_a_query(reads: str, groups: set[str]) -> None:
    plan = parse(PLAN.format(reads=reads), "p.sql", name="p")
    assert {ledger.group for ledger in ledgers_of(plan.sinks[0].query, "p.s", plan)} == groups


@pytest.mark.long
def test_a_broker_that_does_not_answer_is_left_alone_for_a_while() -> None:
    plan = parse(PLAN.format(reads="kept"), "p.sql", name="p")
    plan = replace(plan, settings={"bootstrap.servers": "127.0.0.1:1"})
    rejected = RejectedRecords(ledgers_of(plan.sinks[0].query, "p.s", plan))
    rejected.outdate()
    rejected.refresh(now_s=0.0)
    began_s = time.monotonic()
    rejected.refresh(now_s=LOOK_AGAIN_S - 1)
    assert time.monotonic() - began_s < ANSWER_S_MAX / 2
    assert rejected.by_topic == {}
