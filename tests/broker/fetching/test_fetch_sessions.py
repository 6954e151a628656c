"""Sessions: who gets one, what an incremental fetch changes, and which requests are refused."""

from __future__ import annotations

import pytest

from moldau.broker.fetching.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, INT32_MAX, FetchSessions, Plan
from moldau.core.errors import ErrorCode
from moldau.core.limits import FETCH_SESSION_PARTITIONS_MAX
from moldau.wire.messages import FetchRequest
from moldau.wire.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

VERSION = 12


def request(
    *partitions: tuple[str, int, int],
    session: int = 0,
    epoch: int = INITIAL_EPOCH,
    forget: tuple[str, int] | None = None,
) -> FetchRequest:
    topics = [
        FetchTopic(topic=topic, partitions=[FetchPartition(partition=index, fetch_offset=offset)])
        for topic, index, offset in partitions
    ]
    forgotten = [] if forget is None else [ForgottenTopic(topic=forget[0], partitions=[forget[1]])]
    return FetchRequest(session_id=session, session_epoch=epoch, topics=topics, forgotten_topics_data=forgotten)


def sessions(*, sessions_max: int = 10, eviction_ms_min: int = 1000, partitions_max: int = 100_000) -> FetchSessions:
    return FetchSessions(
        sessions_max=sessions_max, eviction_ms_min=eviction_ms_min, partitions_max=partitions_max, seed=1
    )


def opened(known: FetchSessions, asked: FetchRequest, now_ms: int = 0) -> int:
    plan = known.plan(asked, VERSION, now_ms)
    assert isinstance(plan, Plan)
    assert plan.opens_session
    return known.open(plan.wanted, uses_topic_ids=False, now_ms=now_ms)


def wanted(plan: Plan | ErrorCode) -> list[tuple[str | bytes, int, int]]:
    assert isinstance(plan, Plan)
    return [(one.topic, one.index, one.offset) for one in plan.wanted.values()]


def test_an_incremental_fetch_adds_moves_and_forgets() -> None:
    known = sessions()
    session = opened(known, request(("a", 0, 5), ("b", 0, 7)))
    change = request(("a", 0, 6), ("c", 1, 0), session=session, epoch=1, forget=("b", 0))
    assert wanted(known.plan(change, VERSION, 0)) == [("a", 0, 6), ("c", 1, 0)]
    assert wanted(known.plan(request(session=session, epoch=2), VERSION, 0)) == [("a", 0, 6), ("c", 1, 0)]


def test_no_session_is_opened_when_none_is_wanted() -> None:
    plan = sessions().plan(request(("a", 0, 0), epoch=FINAL_EPOCH), VERSION, 0)
    assert isinstance(plan, Plan)
    assert not plan.opens_session


@pytest.mark.parametrize("epoch", [INITIAL_EPOCH, FINAL_EPOCH])
def test_a_full_fetch_closes_the_session_it_names(epoch: int) -> None:
    known = sessions()
    session = opened(known, request(("a", 0, 0)))
    known.plan(request(("a", 0, 0), session=session, epoch=epoch), VERSION, 0)
    assert known.plan(request(session=session, epoch=1), VERSION, 0) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_repeated_or_skipped_epoch_is_refused() -> None:
    known = sessions()
    session = opened(known, request(("a", 0, 0)))
    known.plan(request(session=session, epoch=1), VERSION, 0)
    for epoch in (1, 3):
        refused = known.plan(request(session=session, epoch=epoch), VERSION, 0)
        assert refused is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_session_keeps_to_names_or_to_ids() -> None:
    known = sessions()
    session = opened(known, request(("a", 0, 0)))
    assert known.plan(request(session=session, epoch=1), 13, 0) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_epochs_wrap_to_one() -> None:
    known = sessions()
    session = opened(known, request(("a", 0, 0)))
    plan = known.plan(request(session=session, epoch=1), VERSION, 0)
    assert isinstance(plan, Plan)
    assert plan.session is not None
    plan.session.epoch = INT32_MAX
    known.plan(request(session=session, epoch=INT32_MAX), VERSION, 0)
    assert plan.session.epoch == 1


def test_a_session_that_forgets_everything_ends() -> None:
    known = sessions()
    session = opened(known, request(("a", 0, 0)))
    assert wanted(known.plan(request(session=session, epoch=1, forget=("a", 0)), VERSION, 0)) == []
    assert len(known) == 0


def test_a_full_house_makes_room_only_for_the_unused_or_smaller() -> None:
    known = sessions(sessions_max=1)
    first = opened(known, request(("a", 0, 0), ("b", 0, 0)), now_ms=0)
    assert opened(known, request(("c", 0, 0)), now_ms=500) == 0, "the first is still young"
    known.plan(request(session=first, epoch=1), VERSION, 1400)
    assert opened(known, request(("c", 0, 0)), now_ms=1500) == 0, "the first is old, but larger and in use"
    assert opened(known, request(("c", 0, 0), ("d", 0, 0), ("e", 0, 0)), now_ms=1500) > 0
    assert opened(known, request(("f", 0, 0)), now_ms=9000) > 0, "nobody used the second for long"


def test_partitions_that_gave_something_go_to_the_end() -> None:
    known = sessions()
    session = opened(known, request(("a", 0, 0), ("b", 0, 0), ("c", 0, 0)))
    plan = known.plan(request(session=session, epoch=1), VERSION, 0)
    assert isinstance(plan, Plan)
    assert plan.session is not None
    plan.session.move_to_end(plan.wanted["a", 0])
    assert [topic for topic, _, _ in wanted(known.plan(request(session=session, epoch=2), VERSION, 0))] == [
        "b",
        "c",
        "a",
    ]


def many(
    *, first: int = 0, count: int = FETCH_SESSION_PARTITIONS_MAX, session: int = 0, epoch: int = INITIAL_EPOCH
) -> FetchRequest:
    asked = [FetchPartition(partition=index) for index in range(first, first + count)]
    topics = [FetchTopic(topic="a", partitions=asked)]
    return FetchRequest(session_id=session, session_epoch=epoch, topics=topics)


def test_a_session_that_outgrows_what_one_request_can_ask_for_is_closed() -> None:
    known = sessions()
    session = opened(known, many())
    assert session > 0
    more = many(first=FETCH_SESSION_PARTITIONS_MAX, count=1, session=session, epoch=1)
    assert known.plan(more, VERSION, 0) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(known) == 0
    assert opened(known, many(count=FETCH_SESSION_PARTITIONS_MAX + 1)) == 0


def test_all_sessions_together_remember_so_many_partitions() -> None:
    known = sessions(partitions_max=10)
    first, second = opened(known, many(count=6)), opened(known, many(count=4))
    assert opened(known, many(count=1)) == 0
    grown = many(first=6, count=1, session=first, epoch=1)
    assert known.plan(grown, VERSION, 0) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert wanted(known.plan(request(session=second, epoch=1, forget=("a", 0)), VERSION, 0))
    assert opened(known, many(count=7)) > 0, "what is closed or forgotten leaves room"
    assert opened(known, many(count=8), now_ms=5000) > 0, "and so does what nobody uses"


def test_a_large_session_takes_no_room_from_those_in_use_but_a_followers_does() -> None:
    known = sessions(partitions_max=10, eviction_ms_min=1000)
    small, large = opened(known, many(count=3)), opened(known, many(count=7))
    for session in (small, large):
        known.plan(request(session=session, epoch=1), VERSION, 1500)
    assert opened(known, many(count=8), now_ms=2000) == 0
    plan = known.plan(many(count=6), VERSION, 2000)
    assert isinstance(plan, Plan)
    assert known.open(plan.wanted, uses_topic_ids=False, now_ms=2000, is_of_replica=True) > 0
    assert isinstance(known.plan(request(session=small, epoch=2), VERSION, 2000), Plan)
    assert known.plan(request(session=large, epoch=2), VERSION, 2000) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_names_that_no_topic_can_have_are_not_remembered() -> None:
    known = sessions()
    plan = known.plan(request(("a" * 250, 0, 0)), VERSION, 0)
    assert isinstance(plan, Plan)
    assert not plan.opens_session
    session = opened(known, request(("a" * 249, 0, 0)))
    longer = request(("b" * 250, 0, 0), session=session, epoch=1)
    assert known.plan(longer, VERSION, 0) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(known) == 0
