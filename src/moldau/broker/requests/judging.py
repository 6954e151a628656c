"""Requests that name very many resources: they are judged some at a time, and others have their turn in between.

To judge a name takes some microseconds, and the line in the audit log about a denial several times as much. A client
without any right could hold up everybody else with nothing but names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from moldau.broker.context import Context
from moldau.broker.producing.allowed_topics import written_topics
from moldau.broker.producing.delayed_produce import own
from moldau.broker.requests.large_requests import outcome
from moldau.broker.rights import (
    ALTER,
    ALTER_CONFIGS,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)
from moldau.controller.settings.configs import ResourceType as ConfigResourceType
from moldau.coordinator.long_work import in_slices
from moldau.core.ids import TopicId
from moldau.core.limits import LARGE_REQUEST_PART
from moldau.security.acls.vocabulary import AclOperation, ResourceType
from moldau.wire.api import ApiKey

if TYPE_CHECKING:
    from moldau.broker.api import Api
    from moldau.broker.authorization import Authorization

JUDGED_AT_ONCE = LARGE_REQUEST_PART  # names: five milliseconds if all of them are denied and told of

Kind: TypeAlias = tuple[AclOperation, ResourceType]
Question: TypeAlias = tuple[AclOperation, ResourceType, str]


class Naming(NamedTuple):
    """Where an API's request names resources, and what is asked about them."""

    elements: Callable[[Any], Sequence[Any] | None]
    """So many questions there are, or a few times as many."""
    questions: Callable[[Any, Context], Iterable[Question]]


class JudgedContext(Context):
    """Of a request whose questions are answered already. What it is denied is told of later, and not while it runs."""

    __slots__ = ("_authorization", "_verdicts", "denials")

    def __init__(self, context: Context, authorization: Authorization, verdicts: dict[Kind, dict[str, bool]]) -> None:
        super().__init__(context.services, context.header, context.peer)
        self._authorization = authorization
        self._verdicts = verdicts
        self.denials: list[Question] = []

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str, *, is_audited: bool = True) -> bool:
        return not self.denied(operation, resource_type, (name,), is_audited=is_audited)

    def denied(
        self, operation: AclOperation, resource_type: ResourceType, names: Iterable[str], *, is_audited: bool = True
    ) -> Set[str]:
        verdicts = self._verdicts.get((operation, resource_type), {})
        refused: dict[str, None] = {}
        for name in names:
            allowed = verdicts.get(name)
            if allowed is None:
                allowed = self._authorization.may(self, operation, resource_type, name, is_audited=False)
            if not allowed:
                refused[name] = None
        if is_audited:
            self.denials += [(operation, resource_type, name) for name in refused]
        return refused.keys()


def judging(api: Api, authorization: Authorization) -> Api:
    """The same API, of which long requests are judged before the handler is called."""
    naming = _NAMING.get(api.key)
    if naming is None:
        return api
    elements, call = naming.elements, api.call

    def judged(request: Any, context: Context) -> Any:
        named = elements(request)
        if named is None or len(named) <= JUDGED_AT_ONCE:
            return call(request, context)
        if api.key is ApiKey.PRODUCE:
            own([data for topic in request.topic_data for data in topic.partition_data])
        return _judged(request, context, naming, call, authorization)

    return replace(api, call=judged)


async def _judged(
    request: Any,
    context: Context,
    naming: Naming,
    call: Callable[[Any, Context], Any],
    authorization: Authorization,
) -> Any:
    long_work = context.services.long_work
    verdicts: dict[Kind, dict[str, bool]] = {}
    async for operation, resource_type, name in in_slices(naming.questions(request, context), long_work):
        of_kind = verdicts.setdefault((operation, resource_type), {})
        if name not in of_kind:
            of_kind[name] = authorization.may(context, operation, resource_type, name, is_audited=False)
    asking = JudgedContext(context, authorization, verdicts)
    try:
        return await outcome(call(request, asking))
    finally:  # before the answer: whoever is denied much waits until all of it is told of, and asks no more till then
        async for denial in in_slices(asking.denials, long_work):
            authorization.note_denial(context, *denial)


def _named(
    operation: AclOperation, resource_type: ResourceType, elements: Callable[[Any], Sequence[Any] | None], name: str
) -> Naming:
    """Each element has the name of one resource."""

    def questions(request: Any, _: Context) -> Iterator[Question]:
        return ((operation, resource_type, getattr(each, name) or "") for each in elements(request) or ())

    return Naming(elements, questions)


def _names(
    operation: AclOperation, resource_type: ResourceType, elements: Callable[[Any], Sequence[str] | None]
) -> Naming:
    """Each element is the name of a resource."""
    return Naming(elements, lambda request, _: ((operation, resource_type, each) for each in elements(request) or ()))


def _topics(operation: AclOperation) -> Naming:
    return _named(operation, TOPIC, lambda request: request.topics, "name")


def _topics_or_ids(*operations: AclOperation) -> Naming:
    def questions(request: Any, context: Context) -> Iterator[Question]:
        ids = context.services.controller.image.topic_ids
        for each in request.topics or ():
            name = ids.get(TopicId(each.topic_id)) or each.name
            if name is not None:
                yield from ((operation, TOPIC, name) for operation in operations)

    return Naming(lambda request: request.topics, questions)


def _metadata(request: Any, context: Context) -> Iterator[Question]:
    """Those that are not there may have to be created."""
    there = context.services.image.topics
    for each in _topics_or_ids(DESCRIBE).questions(request, context):
        yield each
        if request.allow_auto_topic_creation and each[2] not in there:
            yield CREATE, TOPIC, each[2]


def _deleted_topics() -> Naming:
    by_reference = _topics_or_ids(DESCRIBE, DELETE)

    def questions(request: Any, context: Context) -> Iterator[Question]:
        for name in request.topic_names:
            yield from ((DESCRIBE, TOPIC, name), (DELETE, TOPIC, name))
        yield from by_reference.questions(request, context)

    return Naming(lambda request: request.topics or request.topic_names, questions)


def _configs(operation: AclOperation) -> Naming:
    kinds = {int(ConfigResourceType.TOPIC): TOPIC, int(ConfigResourceType.GROUP): GROUP}

    def questions(request: Any, _: Context) -> Iterator[Question]:
        return (
            (operation, kinds[each.resource_type], each.resource_name)
            for each in request.resources
            if each.resource_type in kinds
        )

    return Naming(lambda request: request.resources, questions)


def _coordinators(request: Any, _: Context) -> Iterator[Question]:
    kind = TRANSACTIONAL_ID if request.key_type else GROUP
    return ((DESCRIBE, kind, key) for key in request.coordinator_keys)


def _written(request: Any, context: Context) -> Iterator[Question]:
    return ((WRITE, TOPIC, name) for name in written_topics(request, context))


_NAMING: MappingProxyType[ApiKey, Naming] = MappingProxyType(
    {
        ApiKey.PRODUCE: Naming(lambda request: request.topic_data, _written),
        ApiKey.LIST_OFFSETS: _topics(DESCRIBE),
        ApiKey.METADATA: Naming(lambda request: request.topics, _metadata),
        ApiKey.OFFSET_COMMIT: _topics_or_ids(READ),
        ApiKey.TXN_OFFSET_COMMIT: _topics(READ),
        ApiKey.OFFSET_DELETE: _topics(READ),
        ApiKey.FIND_COORDINATOR: Naming(lambda request: request.coordinator_keys, _coordinators),
        ApiKey.DESCRIBE_GROUPS: _names(DESCRIBE, GROUP, lambda request: request.groups),
        ApiKey.CONSUMER_GROUP_DESCRIBE: _names(DESCRIBE, GROUP, lambda request: request.group_ids),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: _names(DESCRIBE, TOPIC, lambda request: request.subscribed_topic_names),
        ApiKey.CREATE_TOPICS: _topics(CREATE),
        ApiKey.DELETE_TOPICS: _deleted_topics(),
        ApiKey.CREATE_PARTITIONS: _topics(ALTER),
        ApiKey.DELETE_RECORDS: _topics(DELETE),
        ApiKey.ADD_PARTITIONS_TO_TXN: _named(WRITE, TOPIC, lambda request: request.v3_and_below_topics, "name"),
        ApiKey.OFFSET_FOR_LEADER_EPOCH: _named(DESCRIBE, TOPIC, lambda request: request.topics, "topic"),
        ApiKey.DESCRIBE_PRODUCERS: _topics(READ),
        ApiKey.DESCRIBE_CONFIGS: _configs(DESCRIBE_CONFIGS),
        ApiKey.ALTER_CONFIGS: _configs(ALTER_CONFIGS),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: _configs(ALTER_CONFIGS),
    }
)
