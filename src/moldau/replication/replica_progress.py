"""How far one follower has come, as its leader knows it from the follower's fetches."""

from __future__ import annotations

from moldau.core.ids import NO_OFFSET, Offset

NEVER_MS = -(1 << 62)  # before all that a clock shows, which may have begun a moment ago


class ReplicaProgress:
    """`caught_up_ms` is the latest time at which the follower had everything that the leader had then.

    All times are of a clock that nobody sets: one that jumps would take healthy followers out of the ISR, or leave late
    ones in it.

    A follower asks for the offset that it has everything below of, so a fetch offset is the follower's log end.
    """

    __slots__ = (
        "broker_epoch", "caught_up_ms", "fetch_leader_end_offset", "fetch_ms", "log_end_offset", "log_start_offset",
    )  # fmt: skip

    def __init__(self) -> None:
        self.log_end_offset = Offset(NO_OFFSET)
        self.log_start_offset = Offset(NO_OFFSET)
        self.fetch_leader_end_offset = Offset(NO_OFFSET)
        self.fetch_ms = NEVER_MS
        self.caught_up_ms = NEVER_MS
        self.broker_epoch: int | None = None  # of the follower's last fetch

    def begin_epoch(self, end_offset: Offset, *, is_continued: bool, is_in_sync: bool, now_ms: int) -> None:
        """A leader's epoch begins where its log ends.

        Unless it continues the leadership before, a follower may have truncated what it is known to have had.

        A follower that is not in sync counts as never caught up until it fetches: it must not hold the high watermark
        back for nothing, nor join the ISR by what it did in an earlier epoch.
        """
        if not is_continued:
            self.log_end_offset = self.log_start_offset = Offset(NO_OFFSET)
        if self.broker_epoch is not None:  # it fetched from this leader in the epoch before
            self.fetch_leader_end_offset = end_offset
            self.fetch_ms = now_ms if is_in_sync else NEVER_MS
        self.caught_up_ms = now_ms if is_in_sync else NEVER_MS

    def fetched(
        self, offset: Offset, *, log_start_offset: Offset, leader_end_offset: Offset, broker_epoch: int, now_ms: int
    ) -> None:
        """The follower asked for an offset.

        Under a steady stream of small writes a fetch never asks for the leader's end, but for what was its end at the
        fetch before: then the follower was caught up at that time.
        """
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.fetch_leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self.fetch_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.fetch_leader_end_offset = max(leader_end_offset, self.fetch_leader_end_offset)
        self.fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end_offset: Offset, *, now_ms: int, lag_ms_max: int) -> bool:
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_ms_max
