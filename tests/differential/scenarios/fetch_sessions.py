"""Fetch sessions: full, incremental, forgotten, and every way to get the session wrong."""

from __future__ import annotations

from typing import Any

from tests.differential.batches import batch
from tests.differential.scenarios.fetch import fetch, filled, wanted
from tests.differential.scenarios.produce import NOWHERE
from tests.differential.world import NOW_MS, Topic, World

SESSION_VERSIONS = (7, 11, 12, 13, 17)


def begin(world: World, version: int, *topics: dict[str, Any]) -> int:
    answer = fetch(world, version, "begin", *topics, session_epoch=0)
    return int(answer["session_id"])


def forgotten(topic: Topic, *partitions: int) -> dict[str, Any]:
    return {"topic": topic.name, "topic_id": topic.id, "partitions": list(partitions)}


def an_ordinary_life(world: World) -> None:
    for version in SESSION_VERSIONS:
        topic = world.topic(f"v{version}", partitions=2)
        session = begin(world, version, wanted(topic, {"partition": 0}, {"partition": 1}))
        fetch(world, version, "nothing new", session_id=session, session_epoch=1)
        world.fill(topic, batch([b"x"], timestamp=NOW_MS), partition=1)
        fetch(world, version, "one has data", session_id=session, session_epoch=2)
        fetch(world, version, "the same again", session_id=session, session_epoch=3)
        moved = wanted(topic, {"partition": 1, "fetch_offset": 1})
        fetch(world, version, "moved on", moved, session_id=session, session_epoch=4)
        fetch(world, version, "nothing again", session_id=session, session_epoch=5)
        fetch(world, version, "end", session_id=session, session_epoch=-1)
        fetch(world, version, "after the end", session_id=session, session_epoch=6)


def coming_and_going(world: World) -> None:
    for version in SESSION_VERSIONS:
        first, second = filled(world, f"a{version}"), filled(world, f"b{version}")
        session = begin(world, version, wanted(first))
        fetch(world, version, "add", wanted(second), session_id=session, session_epoch=1)
        gone = [forgotten(first, 0)]
        fetch(world, version, "forget", session_id=session, session_epoch=2, forgotten_topics_data=gone)
        fetch(world, version, "forget it again", session_id=session, session_epoch=3, forgotten_topics_data=gone)
        strange = [forgotten(second, 5), forgotten(NOWHERE, 0)]
        fetch(
            world,
            version,
            "forget what is not there",
            session_id=session,
            session_epoch=4,
            forgotten_topics_data=strange,
        )
        both = [forgotten(second, 0)]
        fetch(
            world,
            version,
            "forget and add at once",
            wanted(second),
            session_id=session,
            session_epoch=5,
            forgotten_topics_data=both,
        )
        fetch(world, version, "forget the last", session_id=session, session_epoch=6, forgotten_topics_data=both)
        fetch(world, version, "empty session", session_id=session, session_epoch=7)


def wrong_epochs(world: World) -> None:
    for version in SESSION_VERSIONS:
        topic = filled(world, f"v{version}")
        session = begin(world, version, wanted(topic))
        for epoch in (2, 0x7FFFFFFF, -2):
            fetch(world, version, f"epoch {epoch}", session_id=session, session_epoch=epoch)
        fetch(world, version, "epoch 1", session_id=session, session_epoch=1)
        fetch(world, version, "epoch 1 again", session_id=session, session_epoch=1)
        fetch(world, version, "begun anew", wanted(topic), session_id=session, session_epoch=0)


def wrong_sessions(world: World) -> None:
    topic = filled(world)
    for version in SESSION_VERSIONS:
        for session, epoch in ((12345, 1), (12345, 0), (12345, -1), (0, 1), (-1, 1), (0, -1)):
            fetch(
                world,
                version,
                f"session {session} epoch {epoch}",
                wanted(topic),
                session_id=session,
                session_epoch=epoch,
            )
        fetch(world, version, "no topics, new session", session_epoch=0)


def errors_inside(world: World) -> None:
    for version in SESSION_VERSIONS:
        topic = filled(world, f"v{version}")
        lost = wanted(topic, {"fetch_offset": 99}, {"partition": 3})
        session = begin(world, version, lost, wanted(NOWHERE))
        fetch(world, version, "the errors again", session_id=session, session_epoch=1)
        fetch(world, version, "mended", wanted(topic, {"fetch_offset": 9}), session_id=session, session_epoch=2)
        fetch(world, version, "quiet", session_id=session, session_epoch=3)


def high_watermarks_and_log_starts(world: World) -> None:
    """A partition without records to send is still in the answer when its high watermark or log start moved."""
    for version in (7, 12, 13):
        topic = filled(world, f"v{version}")
        session = begin(world, version, wanted(topic, {"fetch_offset": 9}))
        fetch(world, version, "quiet", session_id=session, session_epoch=1)
        cut = {"name": topic.name, "partitions": [{"partition_index": 0, "offset": 4}]}
        world.quietly("DeleteRecords", 2, topics=[cut], timeout_ms=5_000)
        fetch(world, version, "log start moved", session_id=session, session_epoch=2)
        fetch(world, version, "quiet again", session_id=session, session_epoch=3)


def a_topic_deleted(world: World) -> None:
    for version in (7, 12, 13):
        first, second = filled(world, f"a{version}"), filled(world, f"b{version}")
        session = begin(world, version, wanted(first, {"fetch_offset": 9}), wanted(second, {"fetch_offset": 9}))
        world.quietly("DeleteTopics", 5, topic_names=[first.name], timeout_ms=15_000)
        world.until_gone(first.name)
        fetch(world, version, "one is gone", session_id=session, session_epoch=1)


SCENARIOS = (
    an_ordinary_life,
    coming_and_going,
    wrong_epochs,
    wrong_sessions,
    errors_inside,
    high_watermarks_and_log_starts,
    a_topic_deleted,
)
