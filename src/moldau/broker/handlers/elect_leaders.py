"""ElectLeaders: v0 elects the preferred replica, from v1 on also one that is not in sync where nobody leads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from moldau.broker.api import api
from moldau.broker.context import Context, Services
from moldau.broker.requests.answers import ROWS_MAX, Encoded, encoded, in_thread
from moldau.controller.image import ClusterImage
from moldau.controller.partitions.leaders import ELECTIONS_MAX, PREFERRED, UNCLEAN, refuse_election
from moldau.controller.partitions.states import Refusal
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.api import ApiKey
from moldau.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

Outcomes = Mapping[TopicPartition, Refusal | None]


@api(ApiKey.ELECT_LEADERS, ElectLeadersRequest, versions=(0, 2), forwarded=True)
async def elect_leaders(
    request: ElectLeadersRequest, context: Context
) -> ElectLeadersResponse | Encoded[ElectLeadersResponse]:
    image = context.services.controller.image
    if request.election_type not in (PREFERRED, UNCLEAN):
        return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
    if request.topic_partitions is None:
        rows = sum([1 + len(topic.partitions) for topic in image.topics.values()])
    else:
        rows = sum([1 + len(topic.partitions) for topic in request.topic_partitions])
    # Nothing but what needs an election is left to the loop: of 100,000 partitions that may be one.
    is_large = rows > ROWS_MAX
    outcomes = await in_thread(lambda: _judge(image, request), context) if is_large else _judge(image, request)
    try:
        elected = await _elect(context.services, request.election_type, outcomes)
    except ApiError as wrong:
        return _failed(request, wrong)
    if is_large:
        return await encoded(lambda: _response(image, request, elected), context)
    return _response(image, request, elected)


def _asked(image: ClusterImage, request: ElectLeadersRequest) -> list[tuple[str, list[TopicPartition]]]:
    if request.topic_partitions is None:
        return [
            (name, [TopicPartition(name, index) for index in range(len(topic.partitions))])
            for name, topic in image.topics.items()
        ]
    return [
        (topic.topic, [TopicPartition(topic.topic, index) for index in topic.partitions])
        for topic in request.topic_partitions
    ]


def _judge(image: ClusterImage, request: ElectLeadersRequest) -> dict[TopicPartition, Refusal | None]:
    kind = request.election_type
    return {each: refuse_election(image, each, kind) for _, asked in _asked(image, request) for each in asked}


async def _elect(services: Services, kind: int, outcomes: dict[TopicPartition, Refusal | None]) -> Outcomes:
    """What there is to elect, a limited number at a time."""
    from moldau.controller.partitions.elections import (
        decide_elect_leaders,  # a broker that is alone has nothing to elect
    )

    wanted = [partition for partition, refusal in outcomes.items() if refusal is None]
    for start in range(0, len(wanted), ELECTIONS_MAX):
        some = wanted[start : start + ELECTIONS_MAX]
        decide = partial(decide_elect_leaders, kind=kind, partitions=some, config=services.config)
        for elected in await services.controller.write(decide):
            outcomes[elected.partition] = elected.refusal
    return outcomes


def _response(image: ClusterImage, request: ElectLeadersRequest, outcomes: Outcomes) -> ElectLeadersResponse:
    """Who asks for all partitions does not hear of those that need nothing."""
    is_about_all = request.topic_partitions is None
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=name,
                partition_result=[
                    _result(each.partition, outcomes[each])
                    for each in asked
                    if not (is_about_all and _is_needless(outcomes[each]))
                ],
            )
            for name, asked in _asked(image, request)
        ]
    )


def _is_needless(refusal: Refusal | None) -> bool:
    return refusal is not None and refusal.error is ErrorCode.ELECTION_NOT_NEEDED


def _result(index: int, refusal: Refusal | None) -> PartitionResult:
    if refusal is None:
        return PartitionResult(partition_id=index, error_code=ErrorCode.NONE, error_message=None)
    return PartitionResult(partition_id=index, error_code=refusal.error, error_message=refusal.message)


def _failed(request: ElectLeadersRequest, wrong: ApiError) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=wrong.code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[PartitionResult(index, wrong.code, wrong.message) for index in topic.partitions],
            )
            for topic in request.topic_partitions or []
        ],
    )
