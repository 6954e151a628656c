"""One group with its topics, its members and a stream of records that must not lose one."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from tests.faults.clients import create_topic
from tests.rebalance import ownership
from tests.rebalance.described import Described, ask, describe, logged_generation
from tests.rebalance.members import Member
from tests.rebalance.ownership import Event, Partition
from tests.rebalance.stream import Stream

WAIT_S_MAX = 60.0
LOOK_AGAIN_S = 0.2
PARTITIONS = 4
# kafkajs commits while a rebalance may already be under way, and then reads again what it could not commit.
READS_AGAIN = {"kafkajs"}


class Scenario:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.prefix = f"rebalance-{uuid.uuid4().hex[:10]}"
        self.group = f"{self.prefix}-group"
        self.partitions: set[Partition] = set()
        self.members: list[Member] = []
        self.doomed: set[Member] = set()
        self.changed = threading.Condition()
        self.stream = Stream(bootstrap)
        self.protocol = "classic"
        self.may_repeat = False
        self.may_overlap = False

    def topic(self, suffix: str = "a", *, partitions: int = PARTITIONS) -> str:
        """A new topic of this scenario, with records coming."""
        name = f"{self.prefix}-{suffix}"
        create_topic(self.bootstrap, name, partitions=partitions)
        made = {(name, index) for index in range(partitions)}
        self._wait_for_leaders(name)
        self.partitions |= made
        self.stream.add(sorted(made))
        return name

    def _wait_for_leaders(self, topic: str) -> None:
        def has_leaders() -> bool:
            (found,) = ask(self.bootstrap, "Metadata", 9, topics=[{"name": topic}])["topics"]
            partitions = found["partitions"]
            return bool(partitions) and all(each["error_code"] == 0 for each in partitions)

        self.until(has_leaders, f"the leaders of {topic}")

    def start(self, client: str, *assignors: str, protocol: str = "classic", **options: Any) -> Member:
        """Start a member of the group, of all topics unless options say otherwise."""
        self.protocol = protocol
        self.may_repeat |= client in READS_AGAIN
        chosen = {
            "bootstrap": self.bootstrap,
            "group": self.group,
            "name": f"{client}-{len(self.members)}",
            "topics": sorted({topic for topic, _ in self.partitions}),
            "pattern": None,
            "assignors": assignors,
            "instance": None,
            "protocol": protocol,
            "priority": 0,
            "session_timeout_ms": 10_000,
            "heartbeat_ms": 300,
            "metadata_age_ms": 500,
        }
        member = Member(client, chosen | options, self.changed)
        self.members.append(member)
        return member

    def settle(self, *members: Member, idle: Sequence[Member] = ()) -> Described:
        """Wait until these members share all partitions, the idle ones have none, and the broker says the same."""

        def is_shared() -> bool:
            owned = [member.owned for member in members]
            return all(owned) and sorted(p for each in owned for p in each) == sorted(self.partitions)

        def is_agreed() -> bool:
            if not is_shared() or any(member.owned for member in idle):
                return False
            found = describe(self.bootstrap, self.group, protocol=self.protocol)
            told = {member.name: member.owned for member in (*members, *idle)}
            return (found.state.lower(), found.assignments) == ("stable", told)

        names = [member.name for member in members]
        self.until(is_shared, f"{names} to share {len(self.partitions)} partitions")
        self.until(is_agreed, f"the broker to say the same of {names}")
        return describe(self.bootstrap, self.group, protocol=self.protocol)

    def generation(self) -> int:
        """The number that rises with every rebalance, whichever the protocol."""
        if self.protocol == "consumer":
            epoch = describe(self.bootstrap, self.group, protocol=self.protocol).epoch
            assert epoch is not None
            return epoch
        return logged_generation(self.bootstrap, self.group)

    def until(self, condition: Callable[[], bool], what: str, *, failing: Sequence[Member] = ()) -> None:
        """Wait for it. No member may fail meanwhile but those that are to."""
        self.doomed |= set(failing)
        deadline = time.monotonic() + WAIT_S_MAX
        while not condition():
            died = [each for each in self.members if each.has_failed and each not in self.doomed]
            assert not died, f"{died[0].name} failed: {died[0].error_text()}"
            assert time.monotonic() < deadline, f"waited {WAIT_S_MAX:.0f} s for {what}\n{self.story()}"
            with self.changed:
                self.changed.wait(LOOK_AGAIN_S)

    def story(self) -> str:
        """What happened, for whoever reads a failure."""
        changes = sorted(
            (event for member in self.members for event in (*member.changes, *member.events[-2:])),
            key=lambda event: event.at_us,
        )
        lines = [f"{each.at_us} {each.member} {each.kind} {sorted(each.partitions)} {each.content}" for each in changes]
        errors = [f"--- {member.name}\n{member.error_text()}" for member in self.members]
        return "\n".join([*lines, *errors])

    def finish(self) -> None:
        """No record may be missing, none be read again that was committed, no partition have had two owners."""
        ends = self.stream.stop()
        assert set(ends) == self.partitions, (sorted(ends), sorted(self.partitions))
        self.until(lambda: not ownership.unread(ends, self.histories), "every record to be read")
        conflicts = ownership.conflicts(self.histories)
        assert self.may_overlap or not conflicts, f"{conflicts}\n{self.story()}"
        repeated = ownership.repeated(self.histories, committed_only=self.may_repeat)
        assert not repeated, f"{repeated}\n{self.story()}"
        failed = [event for history in self.histories for event in history if event.kind == "failed"]
        assert self.may_repeat or not failed, f"{failed}\n{self.story()}"

    @property
    def histories(self) -> list[list[Event]]:
        return [list(member.events) for member in self.members if member.events]

    def close(self) -> None:
        self.stream.stop()
        for member in self.members:
            member.close()
