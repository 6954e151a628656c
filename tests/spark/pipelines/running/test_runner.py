"""What pipelines promise, on a real Spark and a real broker."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import table as arrow_table

from moldau.spark.pipelines.running.runner import State
from moldau.spark.pipelines.running.state.locks import AlreadyRunning, ask_to_end, newest_lock
from moldau.spark.storage import LocalFolder
from tests.spark.pipelines.pipelines import Outcome, Pipelines
from tests.spark.topics import Topics

WAIT_S_MAX = 120.0


class Steps:
    """Done one after the other while a pipeline runs, each as soon as its condition holds; then the pipeline ends."""

    def __init__(self, *steps: Any) -> None:
        self._steps = list(steps)
        self._deadline_s = time.monotonic() + WAIT_S_MAX

    def __call__(self, outcome: Outcome) -> None:
        if self._steps and not self._steps[0](outcome):
            if time.monotonic() < self._deadline_s:
                return
            self._steps.clear()  # the test's own assertions say what is missing
        self._steps = self._steps[1:]
        if not self._steps:
            outcome.runner.stop()


def results(topics: Topics, topic: str) -> list[Any]:
    if topic not in topics.admin.list_topics(timeout=30).topics:
        return []
    return [json.loads(value) if value is not None else None for value in topics.values(topic)]


def put(topics: Topics, topic: str, *values: Any, **fields: Any) -> None:
    topics.produce(topic, [json.dumps(value) for value in values], **fields)


def test_a_joined_table_is_read_anew_with_each_batch(topics: Topics, pipelines: Pipelines) -> None:
    orders, customers, joined = topics.create("orders"), topics.create("customers"), topics.name("joined")
    prices = pipelines.folder / "prices"
    write_deltalake(str(prices), arrow_table({"item": ["tea"], "price": [2.0]}))
    path = pipelines.written(f"""
        create stream orders from topic '{orders}'
            with (valueFormat = json, valueSchema = 'customer string, item string');
        create table customers from topic '{customers}' key (id)
            with (valueFormat = json, valueSchema = 'id string, name string');
        create table prices from delta 'prices';
        create sink joined into topic '{joined}' as
            select o.item, c.name, p.price from orders o
            left join customers c on o.customer = c.id left join prices p on o.item = p.item;
    """)
    put(topics, customers, {"id": "c1", "name": "Ann"}, key="c1")
    put(topics, orders, {"customer": "c1", "item": "tea"})

    def first_is_there(_: Outcome) -> bool:
        if not results(topics, joined):
            return False
        put(topics, customers, {"id": "c1", "name": "Anna"}, key="c1")
        write_deltalake(str(prices), arrow_table({"item": ["milk"], "price": [1.0]}), mode="append")
        put(topics, orders, {"customer": "c1", "item": "milk"})
        return True

    outcome = pipelines.run(path, once=False, watch=Steps(first_is_there, lambda _: len(results(topics, joined)) == 2))
    assert outcome.ended_well, outcome.said
    assert results(topics, joined) == [
        {"item": "tea", "name": "Ann", "price": 2.0},
        {"item": "milk", "name": "Anna", "price": 1.0},
    ]
    assert outcome.of("joined").state is State.STOPPED


def test_two_streams_are_joined_within_their_watermarks(topics: Topics, pipelines: Pipelines) -> None:
    shown, clicked, joined = topics.create("shown"), topics.create("clicked"), topics.name("joined")
    schema = "with (valueFormat = json, valueSchema = 'ad string, at timestamp')"
    path = pipelines.written(f"""
        create stream shown from topic '{shown}' watermark at delay '10 minutes' {schema};
        create stream clicked from topic '{clicked}' watermark at delay '10 minutes' {schema};
        create sink joined into topic '{joined}' key (ad) as
            select s.ad, s.at as shown_at, c.at as clicked_at from shown s join clicked c
            on s.ad = c.ad and c.at between s.at and s.at + interval 5 minutes;
    """)
    put(topics, shown, *({"ad": ad, "at": "2026-01-01T10:00:00Z"} for ad in ("a", "b")))
    put(topics, clicked, {"ad": "a", "at": "2026-01-01T10:03:00Z"}, {"ad": "b", "at": "2026-01-01T10:09:00Z"})
    outcome = pipelines.run(path)
    assert outcome.ended_well, outcome.said
    assert [row["ad"] for row in results(topics, joined)] == ["a"]
    query = outcome.of("joined")
    assert (query.rows_total, query.progress.lag) == (4, 0)
    assert query.progress.watermark == "2026-01-01T09:50:00.000Z"


def test_a_bad_record_ends_the_query_with_its_reason(topics: Topics, pipelines: Pipelines) -> None:
    """It would be as bad the next time: other than what may pass, it is not tried again."""
    numbers, copies, later = topics.create("numbers"), topics.name("copies"), topics.name("later")
    path = pipelines.written(f"""
        create stream numbers from topic '{numbers}' with (valueFormat = json, valueSchema = 'n bigint');
        create stream later from topic '{later}' with (valueFormat = json, valueSchema = 'n bigint');
        create sink copies into topic '{copies}' as select n from numbers;
        create sink others into topic '{copies}' as select n from later;
    """)
    put(topics, numbers, {"n": "many"})

    def make_the_other_topic(outcome: Outcome) -> bool:
        if (outcome.of("others").reason or "").startswith("there is no"):
            put(topics, topics.create_named(later), {"n": 1})
            return True
        return False

    ended = (State.FAILED, State.DONE)
    done = Steps(make_the_other_topic, lambda outcome: all(one.state in ended for one in outcome.runner.queries))
    outcome = pipelines.run(path, restarts_max=None, watch=done)
    why = (
        f"the record at offset 0 of {numbers}-0 does not fit: value: field n: expected bigint, got 'many'; "
        "onError=skip leaves such records out, onError=deadletter keeps them in a topic"
    )
    assert f"pipeline.copies failed: {why}" in outcome.said
    assert any(
        said.startswith("pipeline.others failed and starts again") and "there is no" in said for said in outcome.said
    )
    assert not outcome.ended_well
    assert (outcome.of("copies").state, outcome.of("others").state) == (State.FAILED, State.DONE)
    assert results(topics, copies) == [{"n": 1}]


def test_records_that_cannot_be_read_are_counted(topics: Topics, pipelines: Pipelines) -> None:
    kept, left, copies = topics.create("kept", partitions=2), topics.create("left"), topics.name("copies")
    name = topics.name("pipeline")
    path = pipelines.written(
        f"""
        create stream kept from topic '{kept}'
            with (valueFormat = json, valueSchema = 'n bigint', onError = deadletter, minPartitions = 4);
        create stream left_out from topic '{left}' with (valueFormat = json, valueSchema = 'n bigint', onError = skip);
        create view both as select n from kept union all select n from left_out;
        create sink copies into topic '{copies}' as select n from both;
        create sink others into topic '{copies}' as select n from left_out;
    """,
        f"{name}.sql",
    )
    for partition in range(2):
        put(topics, kept, "no number", {"n": 1}, {"n": 2}, {"n": "many"}, partition=partition)
    put(topics, left, {"n": "few"})
    outcome = pipelines.run(path)
    assert outcome.ended_well, outcome.said
    assert outcome.of("copies").as_json()["rejected"] == {kept: 4, left: 1}
    assert outcome.of("others").as_json()["rejected"] == {left: 1}
    put(topics, left, {"n": "fewer"})
    assert pipelines.run(path).of("others").rejected.by_topic == {left: 2}


def test_aborted_records_are_not_read(topics: Topics, pipelines: Pipelines) -> None:
    """Through a chain of two, with records of aborted transactions at both of its joints."""
    numbers, copies, counts = topics.create("numbers"), topics.create("copies"), topics.name("counts")
    for topic in (numbers, copies):
        topics.transaction(topic, ['{"n": 1000}'] * 5, commit=False)
    topics.transaction(numbers, ['{"n": 1}', '{"n": 2}'], commit=True)
    stream = "create stream {} from topic '{}' with (valueFormat = json, valueSchema = 'n bigint'{});"
    first = pipelines.written(
        stream.format("numbers", numbers, "")
        + stream.format("all_numbers", numbers, ", kafka.isolation.level = read_uncommitted")
        + f"create sink copies into topic '{copies}' as select n from numbers;"
        "create sink every into delta 'every' as select n from all_numbers;",
        "first.sql",
    )
    second = pipelines.written(
        stream.format("copies", copies, "")
        + f"create sink counts into topic '{counts}' output complete as select count(*) as n, sum(n) as s from copies;",
        "second.sql",
    )
    assert pipelines.run(first).ended_well
    assert pipelines.run(second).ended_well
    assert results(topics, counts)[-1] == {"n": 2, "s": 3}
    assert DeltaTable(str(pipelines.folder / "every")).to_pyarrow_table().num_rows == 7


def test_an_expectation_can_end_the_query(topics: Topics, pipelines: Pipelines) -> None:
    numbers, copies = topics.create("numbers"), topics.name("copies")
    path = pipelines.written(f"""
        create stream numbers from topic '{numbers}' with (valueFormat = json, valueSchema = 'n bigint');
        expect positive on numbers check (n > 0) otherwise fail;
        create sink copies into topic '{copies}' as select n from numbers;
    """)
    put(topics, numbers, {"n": 1}, {"n": -1})
    outcome = pipelines.run(path)
    assert outcome.said == ['pipeline.copies failed: expectation positive on numbers (n > 0) is broken by {"n":-1}']
    assert results(topics, copies) == []


def test_changes_become_a_compacted_topic(topics: Topics, pipelines: Pipelines) -> None:
    changes, newest = topics.create("changes"), topics.name("newest")
    path = pipelines.written(f"""
        create stream changes from topic '{changes}' changes key (id) with (valueSchema = 'id bigint, name string');
        create sink newest into topic '{newest}' key (id) upsert as select id, name, _op from changes;
    """)
    put(topics, changes, {"op": "c", "after": {"id": 1, "name": "ann"}, "ts_ms": 1})
    put(topics, changes, {"op": "d", "before": {"id": 1, "name": "ann"}, "ts_ms": 2})
    assert pipelines.run(path).ended_well
    assert [(row.key, row.value) for row in topics.rows(newest)] == [(b"1", b'{"id":1,"name":"ann"}'), (b"1", None)]


def test_which_change_of_a_row_is_last(topics: Topics, pipelines: Pipelines) -> None:
    """As the guide says: `orderBy` within a batch, the later batch between two, and a query where that isn't enough."""
    changes = topics.create("changes")
    path = pipelines.written(f"""
        create stream changes from topic '{changes}' changes key (id) with (valueSchema = 'id bigint, name string');
        create sink last into delta 'last' key (id) upsert with (orderBy = '_changed_at')
            as select id, name, _op, _changed_at from changes;
        create sink newest into delta 'newest' key (id) upsert as
            select id, max_by(name, _changed_at) as name, max_by(_op, _changed_at) as _op from changes group by id;
    """)

    def change(operation: str, number: int, name: str, ts_ms: int) -> dict[str, Any]:
        row = {"id": number, "name": name}
        return {"op": operation, "before" if operation == "d" else "after": row, "ts_ms": ts_ms}

    put(topics, changes, change("u", 1, "third", 30), change("u", 1, "second", 20), change("d", 2, "gone", 30))
    assert pipelines.run(path).ended_well
    put(topics, changes, change("u", 1, "first", 10), change("c", 2, "there", 10))
    assert pipelines.run(path).ended_well
    tables = {name: DeltaTable(str(pipelines.folder / name)).to_pyarrow_table() for name in ("last", "newest")}
    found = {
        name: sorted(zip(*table.select(["id", "name"]).to_pydict().values(), strict=True))
        for name, table in tables.items()
    }
    assert found == {"last": [(1, "first"), (2, "there")], "newest": [(1, "third")]}


def test_updates_are_written_once_though_the_batch_runs_again(topics: Topics, pipelines: Pipelines) -> None:
    words, counts = topics.create("words"), topics.name("counts")
    path = pipelines.written(f"""
        create stream words from topic '{words}' with (valueFormat = string);
        create sink counts into topic '{counts}' key (word) output update
            as select value as word, count(*) as times from words group by value;
        create sink lake into delta 'lake' key (word) upsert
            as select value as word, count(*) as times from words group by value;
    """)
    topics.produce(words, ["a", "b", "a"])
    assert pipelines.run(path).ended_well
    for sink in ("counts", "lake"):
        commits = pipelines.folder / ".moldau" / "pipelines" / "pipeline" / "checkpoints" / sink / "commits"
        newest = max(int(one.name) for one in commits.iterdir() if one.name.isdigit())
        for name in (f"{newest}", f".{newest}.crc"):
            (commits / name).unlink(missing_ok=True)
    topics.produce(words, ["b"])
    assert pipelines.run(path).ended_well
    told = sorted((one["word"], one["times"]) for one in results(topics, counts))
    assert told == [("a", 2), ("b", 1), ("b", 2)]
    lake = DeltaTable(str(pipelines.folder / "lake")).to_pyarrow_table().to_pylist()
    assert sorted((row["word"], row["times"]) for row in lake) == [("a", 2), ("b", 2)]


def test_a_replay_begins_at_a_time(topics: Topics, pipelines: Pipelines) -> None:
    numbers, copies = topics.create("numbers"), topics.name("copies")
    path = pipelines.written(f"""
        create stream numbers from topic '{numbers}' with (valueFormat = json, valueSchema = 'n bigint');
        create sink copies into topic '{copies}' as select n from numbers;
    """)
    for number, at_ms in ((1, 1_700_000_000_000), (2, 1_700_000_600_000), (3, 1_700_000_700_000)):
        put(topics, numbers, {"n": number}, timestamp=at_ms)
    from_the_second = {"startingTimestamp": "1700000300000"}
    assert pipelines.run(path).ended_well
    sound = path.read_text()
    path.write_text(sound.replace("n bigint", "n boolean"))
    assert not pipelines.run(path, starting=from_the_second, anew=True).ended_well
    path.write_text(sound)
    assert pipelines.run(path).ended_well
    assert [row["n"] for row in results(topics, copies)] == [1, 2, 3], "a replay that failed has changed nothing"
    for replays in (True, False):
        outcome = pipelines.run(path, starting=from_the_second, anew=replays)
        assert outcome.ended_well, outcome.said
        assert [row["n"] for row in results(topics, copies)] == [1, 2, 3, 2, 3]
    assert len(list((pipelines.folder / ".moldau/pipelines/pipeline/checkpoints").iterdir())) == 1


def test_a_first_batch_that_ended_half_way_is_run_again(topics: Topics, pipelines: Pipelines) -> None:
    """As a full disk or a kill leaves it: Spark has begun to write the offsets of the batch."""
    numbers, copies = topics.create(), topics.name()
    path = pipelines.written(f"""
        create stream numbers from topic '{numbers}' with (valueFormat = string);
        create sink copies into topic '{copies}' as select value from numbers;
    """)
    offsets = pipelines.folder / ".moldau/pipelines/pipeline/checkpoints/copies/offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.9a1f2c1e-7d1a-4f0e-a4e5-0c1de6a1b2c3.tmp").write_bytes(b"v1\n")
    topics.produce(numbers, [b"1", b"2"])
    outcome = pipelines.run(path)
    assert outcome.ended_well, outcome.said
    assert sorted(value or b"" for value in topics.values(copies)) == [b"1", b"2"]


def test_a_second_run_is_refused(topics: Topics, pipelines: Pipelines) -> None:
    numbers = topics.create("numbers")
    path = pipelines.written(f"""
        create stream numbers from topic '{numbers}' with (valueFormat = string);
        create sink copies into files 'copies' as select value from numbers;
    """)
    topics.produce(numbers, ["1"])
    refusals: list[str] = []

    def run_again(_: Outcome) -> bool:
        with pytest.raises(AlreadyRunning) as refused:
            pipelines.run(path)
        refusals.append(str(refused.value))
        return True

    assert pipelines.run(path, once=False, watch=Steps(run_again)).ended_well
    assert refusals[0].endswith("runs this pipeline already")


@pytest.mark.parametrize("by", ["a successor", "a request"])
def test_a_run_ends_when_another_machine_says_so(topics: Topics, pipelines: Pipelines, by: str) -> None:
    """One that was cut off finds its successor's lock; one that is asked to end finds the request."""
    numbers = topics.create("numbers")
    path = pipelines.written(f"""
        create stream numbers from topic '{numbers}' with (valueFormat = string);
        create sink copies into files 'copies' as select value from numbers;
    """)
    state = LocalFolder(pipelines.folder / ".moldau" / "pipelines" / "pipeline")
    deadline_s = time.monotonic() + WAIT_S_MAX

    def say_so(outcome: Outcome) -> None:
        if outcome.of("copies").state is State.RUNNING and not state.read("lock-00000002") and not state.read("stop"):
            found = newest_lock(state)
            assert found is not None
            away = replace(found.holder, host="head", pid=7, machine="another")
            if by == "a request":
                ask_to_end(state, away)
            else:
                state.write("lock-00000002", json.dumps(asdict(replace(away, token="theirs"))).encode())
        if time.monotonic() > deadline_s:
            outcome.runner.stop()

    outcome = pipelines.run(path, once=False, watch=say_so)
    if by == "a request":
        assert (outcome.ended_well, outcome.of("copies").state) == (True, State.STOPPED)
        return
    assert outcome.said == ["process 7 on head has taken this pipeline over, so it ends here"]
    assert (outcome.ended_well, outcome.of("copies").state) == (False, State.FAILED)


def test_a_pipeline_of_tables_alone_is_written_whole(topics: Topics, pipelines: Pipelines) -> None:
    people = topics.create("people")
    path = pipelines.written(f"""
        create table people from topic '{people}' key (id)
            with (valueFormat = json, valueSchema = 'id bigint, name string');
        create sink lake into delta 'lake' as select id, name from people;
    """)
    put(topics, people, {"id": 1, "name": "ann"}, {"id": 1, "name": "anna"}, {"id": 2, "name": "bob"})
    for _ in range(2):
        assert pipelines.run(path).ended_well
    rows = DeltaTable(str(Path(pipelines.folder) / "lake")).to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["name"]) for row in rows) == [(1, "anna"), (2, "bob")]
