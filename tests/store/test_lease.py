from __future__ import annotations

from moldau.core.clock import elapsed_s
from moldau.store.tree.lease import Lease
from tests.store.kinds import run, until


class Session:
    """A client as far as a lease looks at it, and a clock."""

    def __init__(self, session_timeout_s: float) -> None:
        self.session_timeout_s = session_timeout_s
        self.prolonged_s = self.time_s = 1_000.0

    def now_s(self) -> float:
        return self.time_s


def test_a_lease_lasts_for_two_thirds_of_a_session_from_what_was_sent_last() -> None:
    async def test() -> None:
        session = Session(9.0)
        lease = Lease(session, on_lapse=lambda: None, now_s=session.now_s)
        assert not lease.is_held, "it has not begun"
        lease.begin()
        session.time_s += 5.9
        assert lease.is_held
        session.prolonged_s = 1_001.0
        session.time_s = 1_006.9
        assert lease.is_held
        session.time_s = 1_007.0
        assert not lease.is_held, "before any timer has run"
        lease.end()

    run(test)


def test_whoever_waits_learns_that_a_lease_is_over() -> None:
    async def test() -> None:
        lapses: list[bool] = []
        session = Session(0.15)
        session.prolonged_s = elapsed_s()
        lease = Lease(session, on_lapse=lambda: lapses.append(True))
        first = lease.over
        lease.begin()
        over = lease.over
        assert first.is_set()
        assert not over.is_set()
        await until(lambda: bool(lapses))
        assert not lease.is_held
        lease.end()
        assert over.is_set()
        assert len(lapses) == 1

    run(test)
