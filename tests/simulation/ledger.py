"""What clients were told, and what can't be true at the same time as that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from moldau.core.errors import ErrorCode

Violate = Callable[[str], None]
GroupTopicPartition = tuple[str, str, int]  # group, topic, partition

NO_OFFSET = -1
# After these it is not known whether the commit is in the log.
_UNCERTAIN = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR)


class Owners:
    """Who was given what, by generation."""

    def __init__(self, violate: Violate) -> None:
        self._violate = violate
        self._owners: dict[tuple[str, int, int], str] = {}
        self.latest: dict[str, int] = {}

    def given(self, group_id: str, generation: int, owner: str, partitions: Sequence[int]) -> None:
        self.latest[group_id] = max(generation, self.latest.get(group_id, -1))
        for partition in partitions:
            other = self._owners.setdefault((group_id, generation, partition), owner)
            if other != owner:
                self._violate(
                    f"partition {partition} has two owners in generation {generation} of {group_id}: {other}, {owner}"
                )


class Claims:
    """What members of groups hold, from the moment that they are given it until they have given it up, or the
    coordinator has thrown them out; they may not know that yet."""

    def __init__(self, violate: Violate) -> None:
        self._violate = violate
        self._members: set[tuple[str, str]] = set()
        self.holders: dict[tuple[str, int], str] = {}

    def members_are(self, members: set[tuple[str, str]]) -> None:
        """Groups and members, by what the log says."""
        for group_id, member_id in sorted(self._members - members):
            self._throw_out(group_id, member_id)
        self._members = set(members)

    def _throw_out(self, group_id: str, member_id: str) -> None:
        held = [
            partition for (group, partition), holder in self.holders.items() if (group, holder) == (group_id, member_id)
        ]
        self.release(group_id, member_id, held)

    def claim(self, group_id: str, member_id: str, partitions: Sequence[int]) -> None:
        if (group_id, member_id) not in self._members:
            return  # the answer came too late
        for partition in partitions:
            other = self.holders.setdefault((group_id, partition), member_id)
            if other != member_id:
                self._violate(f"partition {partition} of {group_id} has two owners: {other} and {member_id}")

    def release(self, group_id: str, member_id: str, partitions: Sequence[int]) -> None:
        for partition in partitions:
            if self.holders.get((group_id, partition)) == member_id:
                del self.holders[group_id, partition]


@dataclass
class Attempt:
    """A commit of an offset that no other attempt has."""

    offset: int
    sent: int
    ended: int | None = None
    """None while it may still arrive."""
    error: ErrorCode | None = None

    @property
    def is_acknowledged(self) -> bool:
        return self.error is ErrorCode.NONE


@dataclass
class Commits:
    """Commits outside of transactions, against what is read back."""

    violate: Violate
    owners: Owners
    _attempts: dict[GroupTopicPartition, dict[int, Attempt]] = field(default_factory=dict)
    _moments: count[int] = field(default_factory=count)

    def now(self) -> int:
        return next(self._moments)

    def begin(self, place: GroupTopicPartition) -> Attempt:
        attempts = self._attempts.setdefault(place, {})
        attempt = Attempt(len(attempts), self.now())
        attempts[attempt.offset] = attempt
        return attempt

    def end(self, place: GroupTopicPartition, attempt: Attempt, error: ErrorCode, *, is_outdated: bool) -> None:
        """`is_outdated` if members of the group knew better before the commit was sent."""
        if error in _UNCERTAIN:
            return
        attempt.ended, attempt.error = self.now(), error
        if attempt.is_acknowledged and is_outdated:
            self.violate(f"a commit for {place} was accepted after the partition had another owner: {attempt}")

    def check(self, place: GroupTopicPartition, offset: int, asked: int) -> None:
        """What was read by somebody who asked at that moment."""
        attempts = self._attempts.get(place, {})
        known = [each for each in attempts.values() if each.is_acknowledged and (each.ended or 0) < asked]
        found = attempts.get(offset)
        if found is None:
            if offset != NO_OFFSET or known:
                self.violate(f"{place} has offset {offset}; acknowledged were {known[-3:]}")
        elif found.error not in (None, ErrorCode.NONE):
            self.violate(f"{place} has offset {offset}, whose commit was refused: {found}")
        elif any(found.ended is not None and found.ended < each.sent for each in known):
            self.violate(f"{place} went back to {found}, after {known[-1]}")
