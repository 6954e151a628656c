"""Who may not delete a topic may not delete one that is just being created either."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.authorization import Authorization
from moldau.broker.context import Context, Peer
from moldau.broker.handlers.delete_topics import delete_topics
from moldau.controller.image import ClusterImage
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import AclId
from moldau.security.acls.authorizer import Authorizer
from moldau.security.acls.bindings import Acl
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType
from moldau.security.principals import ANONYMOUS
from moldau.wire.api import ApiKey
from moldau.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from tests.controller.clusters import cluster, topic, topic_id

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
WITH_IDS = 6


class CreatingController:
    """A controller that has not published what it is committing: decisions see a topic that no image has yet."""

    def __init__(self) -> None:
        self.image = cluster()
        self.decided: list[Decision[Any]] = []

    async def write(self, decide: Callable[[ClusterImage], Decision[Any]]) -> Any:
        self.decided.append(decide(cluster(topic("new"))))
        return self.decided[-1].reply


def deleted(*references: DeleteTopicState, operations: tuple[AclOperation, ...]) -> list[DeletableTopicResult]:
    controller = CreatingController()
    authorizer = Authorizer()
    pattern, kind = PatternType.PREFIXED, ResourceType.TOPIC
    authorizer.follow(
        {
            AclId(bytes([number])): Acl(kind, "n", pattern, "User:ANONYMOUS", "*", each, PermissionType.ALLOW)
            for number, each in enumerate(operations)
        }
    )

    async def removed(_: object) -> None:
        pass

    services: Any = SimpleNamespace(
        authorization=Authorization(authorizer),
        config=BrokerConfig.of({}),
        controller=controller,
        quotas=None,
        reconciliation=SimpleNamespace(removed=removed),
    )
    header: Any = SimpleNamespace(api_key=int(ApiKey.DELETE_TOPICS), api_version=WITH_IDS)
    context = Context(services, header, Peer("PLAINTEXT", "10.0.0.1", 1, ANONYMOUS))
    request = DeleteTopicsRequest(topics=list(references), timeout_ms=10_000)
    response = asyncio.run(delete_topics.call(request, context))  # type: ignore[arg-type]
    records = [record for decision in controller.decided for record in decision.records]
    assert len(records) == sum(each.error_code == ErrorCode.NONE for each in response.responses)
    return list(response.responses)


REFERENCES = {"name": DeleteTopicState(name="new"), "id": DeleteTopicState(topic_id=topic_id(100))}


@pytest.mark.parametrize("given", REFERENCES)
def test_a_topic_that_is_being_created_is_not_deleted_without_the_right(given: str) -> None:
    reference = REFERENCES[given]
    (result,) = deleted(reference, operations=(AclOperation.DESCRIBE,))
    assert (result.error_code, result.name, result.topic_id) == (DENIED, reference.name, reference.topic_id)


@pytest.mark.parametrize("given", REFERENCES)
def test_whoever_may_deletes_it(given: str) -> None:
    (result,) = deleted(REFERENCES[given], operations=(AclOperation.DESCRIBE, AclOperation.DELETE))
    assert (result.error_code, result.name) == (ErrorCode.NONE, "new")


def test_that_a_topic_is_not_there_is_told_to_whoever_may_see_it() -> None:
    missing, hidden = DeleteTopicState(name="none"), DeleteTopicState(name="other")
    found = {each.name: each.error_code for each in deleted(missing, hidden, operations=(AclOperation.DESCRIBE,))}
    assert found == {"none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "other": DENIED}
