"""What a request needs to be allowed, and who says so: the users' file by names, or the cluster's ACLs by topics.

A subject is its topic's by TopicNameStrategy, in any context: whoever may do something to the topic may do the like to
its schemas. What names no topic (records, contexts, what counts for all) is the cluster's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from starlette.requests import Request

from moldau.client.cluster import Cluster, check
from moldau.core.topic_names import topic_name_problem
from moldau.registry.names import GLOBAL_CONTEXT
from moldau.schemas.subjects import QualifiedSubject
from moldau.security.acls.vocabulary import AclOperation, bit_set
from moldau.web.authentication import login_of
from moldau.web.logins import Action
from moldau.web.sessions import Session, SessionLimits, Sessions
from moldau.wire.messages import DescribeClusterRequest, DescribeClusterResponse, MetadataRequest, MetadataResponse
from moldau.wire.messages.metadata import MetadataRequestTopic

REMEMBERED_S = 2.0  # what the cluster said: a right that is given or taken counts after that
TOPICS_MAX = 20_000  # that are remembered for one user: anybody may ask for any name
ASKING_MAX = 32  # questions to the cluster by users' logins at a time
SUFFIXES = ("-key", "-value")
NOTHING = 0


@dataclass(frozen=True, slots=True)
class Right:
    """Any one of the operations is enough. `action` is what a line of the users' file says."""

    action: Action
    on_topic: int
    on_cluster: int


_ALTER = bit_set(AclOperation.ALTER, AclOperation.ALTER_CONFIGS)
READ = Right(
    Action.READ, bit_set(AclOperation.DESCRIBE, AclOperation.READ), bit_set(AclOperation.DESCRIBE)
)  # Kafka gives DESCRIBE to whoever may READ, WRITE, DELETE or ALTER: those who produce have to find their schema
CHECK = Right(Action.READ, bit_set(AclOperation.WRITE), _ALTER)
WRITE = Right(Action.WRITE, bit_set(AclOperation.WRITE), _ALTER)
DELETE = Right(Action.WRITE, bit_set(AclOperation.DELETE, AclOperation.ALTER), _ALTER)
CONFIGURE = Right(Action.WRITE, _ALTER, _ALTER)
ADMIN = Right(Action.ADMIN, _ALTER, _ALTER)


May: TypeAlias = Callable[[str], bool]


class Rights(Protocol):
    async def judged(self, request: Request, right: Right, subjects: Iterable[str], /) -> May:
        """Whether its user has this right for one of these subjects, by their names with contexts."""


class OfLogins:
    async def judged(self, request: Request, right: Right, _subjects: Iterable[str], /) -> May:
        """Each when it is asked about: of a long list only a page is."""
        login = login_of(request)
        return lambda subject: login.may(right.action, subject)


class ClusterUser(Session):
    """One who logs in to the cluster, and what it lets him do."""

    def __init__(self, principal: str, client: Mapping[str, str], timeout_s: float, pool: ThreadPoolExecutor) -> None:
        super().__init__(principal, client, timeout_s, pool)
        self._operations: dict[str | None, tuple[int, float]] = {}  # of topics, and of the cluster

    async def operations(self, places: Collection[str | None]) -> Mapping[str | None, int]:
        """Bit sets, of topics by names and of the cluster by None."""
        now_s = time.monotonic()
        known = {each: self._operations.get(each, (NOTHING, float("-inf"))) for each in places}
        late = [each for each, (_, told_s) in known.items() if now_s - told_s >= REMEMBERED_S]
        told = await self.ask(lambda cluster: _told(cluster, late)) if late else {}
        if len(self._operations) + len(told) > TOPICS_MAX:
            self._operations.clear()
        self._operations.update((each, (bits, now_s)) for each, bits in told.items())
        return {**{each: bits for each, (bits, _) in known.items()}, **told}


def _told(cluster: Cluster, places: Iterable[str | None]) -> Mapping[str | None, int]:
    found: dict[str | None, int] = dict.fromkeys(places, NOTHING)
    if None in found:
        asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
        answer = cluster.ask(asked, DescribeClusterResponse)
        check(answer.error_code, answer.error_message)
        found[None] = answer.cluster_authorized_operations
    topics = [MetadataRequestTopic(name=each) for each in found if each is not None]
    if topics:
        request = MetadataRequest(
            topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=True
        )
        for each in cluster.ask(request, MetadataResponse).topics:
            found[each.name] = each.topic_authorized_operations
    return found


class OfCluster:
    def __init__(self, client: Mapping[str, str], timeout_s: float, limits: SessionLimits | None = None) -> None:
        """`client` is how the registry reaches the cluster, and so its users do, by logins of their own."""
        pool = self._pool = ThreadPoolExecutor(ASKING_MAX, "ask")
        self.users = Sessions(
            client, lambda principal, own: ClusterUser(principal, own, timeout_s, pool), limits or SessionLimits()
        )

    def close(self) -> None:
        self.users.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def judged(self, request: Request, right: Right, subjects: Iterable[str], /) -> May:
        user = await self.users.of_request(request)
        places = {each: topic_of(each) for each in subjects}
        operations = await user.operations({*places.values()})
        allowed = {
            place
            for place, bits in operations.items()
            if bits & (right.on_cluster if place is None else right.on_topic)
        }
        return lambda subject: subject in places and places[subject] in allowed


def topic_of(subject: str) -> str | None:
    """The topic whose keys or values it is for."""
    found = QualifiedSubject.parse(subject)
    name = found.subject if found.context != GLOBAL_CONTEXT else ""
    topic = next((name.removesuffix(each) for each in SUFFIXES if name.endswith(each)), "")
    return topic if topic_name_problem(topic) is None else None
