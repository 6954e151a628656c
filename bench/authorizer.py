"""What ten thousand ACLs cost a request, and what a change of one costs the loop.

    python -m bench.authorizer --acls 10000

Each figure is the best of several, in time of the processor. An answer that is asked for again is remembered; the first
one after a change of any ACL is not.
"""

from __future__ import annotations

import argparse
import time
import timeit
import tracemalloc
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from bench.stalls import say
from moldau.broker.authorization import Authorization
from moldau.broker.context import Context, Peer
from moldau.broker.fetching.allowed_reading import read_allowed
from moldau.broker.fetching.fetch_sessions import Wanted
from moldau.broker.fetching.reading import Terms, read
from moldau.broker.producing.allowed_topics import restrict_produce
from moldau.controller.image import ClusterImage
from moldau.controller.machine import apply
from moldau.controller.settings.acls import decide_create_acls, decide_delete_acls, matching_acls
from moldau.core.errors import ErrorCode
from moldau.core.ids import AclId
from moldau.security.acls.authorizer import Authorizer
from moldau.security.acls.bindings import Acl, AclFilter
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType
from moldau.security.principals import Principal
from moldau.wire.api import ApiKey
from moldau.wire.messages import ProduceRequest
from moldau.wire.messages.fetch import FetchPartition
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData

ROUNDS = 20
READ, WRITE, TOPIC = AclOperation.READ, AclOperation.WRITE, ResourceType.TOPIC
HOST = "10.0.0.1"
USER = Principal("User", "user-1")
ACLS_PER_ENTRY = 5_000


def literal(name: str, principal: str, permission: PermissionType = PermissionType.ALLOW) -> Acl:
    return Acl(TOPIC, name, PatternType.LITERAL, principal, "*", READ, permission)


def prefixed(name: str, principal: str) -> Acl:
    return Acl(TOPIC, name, PatternType.PREFIXED, principal, "*", READ, PermissionType.ALLOW)


def many_users(number: int) -> Acl:
    """300 users, each with ACLs for topics of their own and for prefixes of teams."""
    user = f"User:user-{number % 300}"
    return prefixed(f"team-{number}.", user) if number % 5 == 0 else literal(f"topic-{number}", user)


def one_user(number: int) -> Acl:
    name = f"topic-{number}"
    return prefixed(name, "User:user-1") if number % 2 else literal(name, "User:user-1")


def one_topic(number: int) -> Acl:
    return literal("topic-1", f"User:user-{number}")


def image_of(acls: list[Acl]) -> ClusterImage:
    image = ClusterImage()
    for first in range(0, len(acls), ACLS_PER_ENTRY):
        image = apply(image, decide_create_acls(image, acls[first : first + ACLS_PER_ENTRY]).records)
    return image


def best_us(action: Callable[[], object], number: int) -> float:
    return min(timeit.repeat(action, timer=time.process_time, number=number, repeat=ROUNDS)) / number * 1e6


def following(acls: Mapping[AclId, Acl]) -> Authorizer:
    authorizer = Authorizer()
    authorizer.follow(acls)
    return authorizer


def measure(count: int, make: Callable[[int], Acl]) -> None:
    image = image_of([make(number) for number in range(count)])
    extra = prefixed("another-", "User:user-1")
    more = apply(image, decide_create_acls(image, [extra]).records)
    tracemalloc.start()
    authorizer = following(image.acls)
    index_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    def change() -> None:
        authorizer.follow(more.acls)
        authorizer.follow(image.acls)

    exact = AclFilter(TOPIC, "none", PatternType.LITERAL, "User:user-1", "*", READ, PermissionType.ALLOW)
    again = best_us(lambda: authorizer.authorize(USER, HOST, READ, TOPIC, "topic-1"), 20_000)
    first = best_us(lambda: authorizer._find(str(USER), HOST, READ, TOPIC, "team-70.orders"), 2_000)
    any_topic = best_us(lambda: authorizer._find_on_any(str(USER), HOST, WRITE, TOPIC), 1)
    say(f"{make.__name__.replace('_', ' ')}, {count:,} ACLs, {index_bytes / 1e6:.1f} MB of index")
    say(f"  an answer that is remembered {again:.2f} µs, one that is not {first:.2f} µs, any topic {any_topic:.0f} µs")
    whole = best_us(lambda: following(image.acls), 1)
    say(f"  one ACL more or less {best_us(change, 1) / 2e3:.2f} ms, all of them {whole / 1e3:.1f} ms")
    everything = Acl(TOPIC, "topic-1", PatternType.LITERAL, str(USER), "*", AclOperation.ALL, PermissionType.ALLOW)
    produced, fetched = cost_of_requests(following({**image.acls, AclId(b""): everything}))
    say(f"  a Produce of one topic {produced:.2f} µs more, a Fetch of one topic {fetched:.2f} µs more")
    described = best_us(lambda: matching_acls(image, AclFilter(principal="User:user-1")), 1)
    deleted = best_us(lambda: decide_delete_acls(image, [exact]), 100)
    say(f"  found by a principal {described / 1e3:.2f} ms, by all that it says {deleted:.1f} µs")


def cost_of_requests(authorizer: Authorizer) -> tuple[float, float]:
    """What a request to one topic costs more than without an authorizer, as handlers ask it."""
    services: Any = SimpleNamespace(authorization=Authorization(authorizer), partitions=Nowhere(), controller=None)
    header: Any = SimpleNamespace(api_key=ApiKey.PRODUCE, api_version=9)
    context = Context(services, header, Peer("PLAINTEXT", HOST, 1, USER))
    records = memoryview(bytes(200))
    produce = ProduceRequest(
        topic_data=[TopicProduceData("topic-1", partition_data=[PartitionProduceData(0, records)])]
    )
    work: Any = SimpleNamespace()
    terms = Terms(version=12, bytes_max=1, bytes_min=1, read_committed=False, changes_only=False)
    wanted = [Wanted("topic-1", FetchPartition())]
    produced = best_us(lambda: restrict_produce(produce, work, context), 5_000)
    allowed = best_us(lambda: read_allowed(wanted, terms, context), 5_000)
    return produced, allowed - best_us(lambda: read(wanted, terms, services.partitions), 5_000)


class Nowhere:
    """Partitions of a broker that has none: finding them is no part of what is measured."""

    def get(self, _topic: str, _index: int) -> None:
        return None

    def why_missing(self, _topic: str | bytes, _index: int) -> ErrorCode:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--acls", type=int, default=10_000)
    count = parser.parse_args().acls
    for make in (many_users, one_user, one_topic):
        measure(count, make)


if __name__ == "__main__":
    main()
