"""What an answer names may be as long as a state is: it is judged in slices, and no further than the answer needs."""

from __future__ import annotations

import asyncio
from asyncio import Future
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from moldau.broker.api import Api
from moldau.broker.authorization import Authorization
from moldau.broker.context import Context, Peer
from moldau.broker.handlers.consumer_group_describe import consumer_group_describe
from moldau.broker.handlers.describe_transactions import describe_transactions
from moldau.controller.image import ClusterImage
from moldau.coordinator.long_work import LongWork
from moldau.core.config.broker import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.core.ids import AclId
from moldau.security.acls.authorizer import Authorizer
from moldau.security.acls.bindings import Acl
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType
from moldau.security.principals import ANONYMOUS
from moldau.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup, Member
from moldau.wire.messages.describe_transactions import DescribeTransactionsRequest, TopicData, TransactionState
from moldau.wire.schema import Message

MANY, TURNS_MIN = 20_000, 5
GROUP, TRANSACTION = ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
T = TypeVar("T")


class Coordinator:
    """Whatever is asked, this is its answer; one that has to be waited for is a future."""

    def __init__(self, answer: object, *, is_waited_for: bool) -> None:
        self._answer = answer
        self._is_waited_for = is_waited_for

    def write(self, *_: object) -> Any:
        if not self._is_waited_for:
            return self._answer
        future: Future[object] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, self._answer)
        return future


def asked(api: Api, request: Message, answer: object, *seen: str, is_waited_for: bool = False) -> tuple[Any, int]:
    """The response to whoever sees topics whose names begin so, and how many turns others had meanwhile."""

    async def run() -> tuple[Any, int]:
        authorizer = Authorizer()
        patterns = [(GROUP, "g"), (TRANSACTION, "t"), *((ResourceType.TOPIC, name) for name in seen)]
        describe, allow, prefixed = AclOperation.DESCRIBE, PermissionType.ALLOW, PatternType.PREFIXED
        authorizer.follow(
            {
                AclId(bytes([number])): Acl(kind, name, prefixed, "User:ANONYMOUS", "*", describe, allow)
                for number, (kind, name) in enumerate(patterns)
            }
        )
        coordinator = Coordinator(answer, is_waited_for=is_waited_for)
        services: Any = SimpleNamespace(
            authorization=Authorization(authorizer),
            config=BrokerConfig.of({}),
            controller=SimpleNamespace(image=ClusterImage()),
            groups=coordinator,
            long_work=LongWork(),
            transactions=coordinator,
        )
        header: Any = SimpleNamespace(api_key=int(api.key), api_version=0)
        response: Any = api.call(request, Context(services, header, Peer("PLAINTEXT", "10.0.0.1", 1, ANONYMOUS)))
        turns = 0
        while isinstance(response, Future) and not response.done():
            turns += 1
            await asyncio.sleep(0)
        return (response.result() if isinstance(response, Future) else response), turns

    return asyncio.run(run())


def group_of(names: list[str], *, is_waited_for: bool = False) -> tuple[DescribedGroup, int]:
    state = DescribedGroup(group_id="g", members=[Member(member_id="m", subscribed_topic_names=names)])
    request = ConsumerGroupDescribeRequest(group_ids=["g"])
    response, turns = asked(consumer_group_describe, request, state, "open", is_waited_for=is_waited_for)
    return response.groups[0], turns


def transaction_of(names: list[str], *, is_waited_for: bool = False) -> tuple[list[str], int]:
    state = TransactionState(transactional_id="t", topics=[TopicData(name, [0]) for name in names])
    request = DescribeTransactionsRequest(transactional_ids=["t"])
    response, turns = asked(describe_transactions, request, state, "open", is_waited_for=is_waited_for)
    return [each.topic for each in response.transaction_states[0].topics], turns


def test_others_have_their_turn_while_the_topics_of_a_group_are_judged() -> None:
    group, turns = group_of([f"open-{number}" for number in range(MANY)])
    assert (group.error_code, len(group.members)) == (ErrorCode.NONE, 1)
    assert turns >= TURNS_MIN


@pytest.mark.parametrize("count", [10, MANY])
def test_a_group_is_hidden_at_the_first_topic_that_its_client_may_not_see(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="moldau.audit")
    group, _ = group_of(["open", *(f"hidden-{number}" for number in range(count))])
    assert (group.error_code, group.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
    assert [line.partition(" for request")[0].rpartition(":")[2] for line in caplog.messages] == ["hidden-0"]


def test_others_have_their_turn_while_the_topics_of_a_transaction_are_judged() -> None:
    names = [f"{kind}-{number}" for number in range(MANY // 2) for kind in ("open", "hidden")]
    topics, turns = transaction_of(names)
    assert topics == names[::2]
    assert turns >= TURNS_MIN


def test_what_has_to_be_waited_for_is_judged_when_it_is_there() -> None:
    assert group_of(["hidden"], is_waited_for=True)[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert group_of(["open"], is_waited_for=True)[0].error_code == ErrorCode.NONE
    assert transaction_of(["open", "hidden"], is_waited_for=True)[0] == ["open"]
    assert transaction_of(["open", "hidden"])[0] == ["open"]
