"""Which faults strike, whom and for how long: the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

LEADER, FOLLOWER, CONTROLLER = "leader", "follower", "controller"
GROUP_COORDINATOR, TRANSACTION_COORDINATOR = "group coordinator", "transaction coordinator"
MAJORITY, ALL = "majority", "all"
NOBODY = ""

ONE_BROKER = (LEADER, FOLLOWER, CONTROLLER, GROUP_COORDINATOR, TRANSACTION_COORDINATOR)


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    roles: tuple[str, ...]
    hold_s: tuple[float, float] = (3.0, 15.0)
    ends_session: bool = False
    """Whether the cluster does without the broker: its partitions get other leaders, and it leaves their ISRs."""
    needs: str = ""
    """What must be there: `zookeeper`, or `several` brokers."""


@dataclass(frozen=True, slots=True)
class Planned:
    kind: Kind
    role: str
    hold_s: float

    @property
    def is_one_broker(self) -> bool:
        return self.role in ONE_BROKER

    def __str__(self) -> str:
        whom = f" of the {self.role}" if self.role in ONE_BROKER else f" of {self.role}" if self.role else ""
        return f"{self.kind.name}{whom} for {self.hold_s:.0f} s"


ANY = (*ONE_BROKER, MAJORITY, ALL)
PROCESS = (
    Kind("kill -9", ANY, (3.0, 15.0), ends_session=True),
    Kind("SIGTERM", ANY, (3.0, 10.0), ends_session=True),
    Kind("SIGSTOP", ANY, (5.0, 60.0), ends_session=True),
    Kind("controller killed", (CONTROLLER,), (3.0, 10.0), ends_session=True, needs="several"),
    Kind("rolling restart", (NOBODY,), (0.0, 1.0), needs="several"),
)
NETWORK = (
    Kind("isolation", (*ONE_BROKER, MAJORITY), (5.0, 40.0), ends_session=True, needs="several"),
    Kind("partition from the other brokers", (LEADER, CONTROLLER), (5.0, 30.0), needs="several"),
    Kind("partition from the other brokers, then kill -9", (LEADER, CONTROLLER), (5.0, 20.0), needs="several"),
    Kind("one-way partition, nothing out", (LEADER, FOLLOWER), (5.0, 30.0), needs="several"),
    Kind("one-way partition, nothing in", (LEADER, FOLLOWER), (5.0, 30.0), needs="several"),
    Kind("partition from the store", (LEADER, CONTROLLER), (5.0, 40.0), needs="zookeeper"),
    Kind("partition of a client", (NOBODY,), (5.0, 20.0)),
    Kind("slow network", (LEADER, FOLLOWER), (5.0, 20.0)),
    Kind("lost packets", (LEADER, FOLLOWER), (5.0, 20.0)),
    Kind("connection resets", (LEADER, FOLLOWER), (3.0, 10.0)),
)
DISK = (
    Kind("slow disk", (LEADER, FOLLOWER), (5.0, 20.0)),
    Kind("fsync error", (LEADER, FOLLOWER), (5.0, 15.0)),
    Kind("disk full", (LEADER, FOLLOWER), (5.0, 15.0)),
    Kind("log directory gone", (LEADER, FOLLOWER), (5.0, 15.0)),
    Kind("disk lost", (LEADER, FOLLOWER), (3.0, 10.0), ends_session=True, needs="several"),
    Kind("torn tail", (LEADER, FOLLOWER), (2.0, 8.0), ends_session=True, needs="several"),
    Kind("flipped bit", (LEADER, FOLLOWER), (2.0, 8.0), ends_session=True, needs="several"),
)
CLUSTER = (
    Kind("clock jump", ONE_BROKER, (5.0, 20.0)),
    Kind("reassignment", (NOBODY,), (2.0, 5.0), needs="several"),
    Kind("leader elections", (NOBODY,), (5.0, 15.0), needs="several"),
    Kind("topics made and deleted", (NOBODY,), (5.0, 15.0)),
    Kind("store leader killed", (NOBODY,), (5.0, 20.0), needs="zookeeper"),
    Kind("store majority lost", (NOBODY,), (5.0, 20.0), needs="zookeeper"),
)
KINDS = (*PROCESS, *NETWORK, *DISK, *CLUSTER)


def possible(*, brokers: int, store: str, only: Sequence[str] = (), roles: Sequence[str] = ()) -> list[Kind]:
    """The kinds that such a cluster can have; `only` has parts of their names, `roles` who may be struck."""
    have = {"", *(["several"] if brokers > 1 else []), store}
    kinds = [kind for kind in KINDS if kind.needs in have]
    if roles:
        narrowed = [replace(kind, roles=tuple(role for role in kind.roles if role in roles)) for kind in kinds]
        kinds = [kind for kind in narrowed if kind.roles]
    return [kind for kind in kinds if not only or any(part in kind.name for part in only)]


def plan(seed: int, kinds: Sequence[Kind], *, hold_s_max: float) -> Iterator[Planned]:
    """Without an end: all kinds in some order, then all of them again in another, each with some role."""
    chance = random.Random(seed)
    while True:
        for kind in chance.sample(kinds, len(kinds)):
            least, most = kind.hold_s
            yield Planned(kind, chance.choice(kind.roles), chance.uniform(least, max(least, min(most, hold_s_max))))
