"""Topics come and go. Checks, their order and their words are Kafka's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from moldau.controller.image import ClusterImage, Draft, PartitionImage, TopicImage
from moldau.controller.partitions.placement import Unplaceable, place
from moldau.controller.partitions.states import THROTTLED, Admit, Refusal, admit_all, assigned_partition
from moldau.controller.records import TopicCreated, TopicDeleted
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.describe import ConfigEntry, describe_topic_config
from moldau.core.config.topic import validate_topic_overrides
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID, TopicId, random_uuid
from moldau.core.limits import PARTITIONS_PER_REQUEST_MAX
from moldau.core.topic_names import CLUSTER_METADATA_TOPIC, collision_key, may_collide, topic_name_problem

DEFAULT = -1  # a number of partitions or replicas that is left to the broker's configuration


class NewTopic(Struct, frozen=True):
    """A topic to create; `assignments` are (partition, brokers) pairs and exclude the two numbers."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


class CreatedTopic(Struct, frozen=True):
    """What became of one. Of a topic that was refused only name, error and message mean anything."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: TopicId = ZERO_UUID
    partitions: int = -1
    replication_factor: int = -1
    configs: tuple[ConfigEntry, ...] = ()


class TopicReference(Struct, frozen=True):
    """A topic by name or by id; the other is None or zero."""

    name: str | None
    topic_id: TopicId = ZERO_UUID


class DeletedTopic(Struct, frozen=True):
    name: str | None
    topic_id: TopicId
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def decide_create_topics(
    image: ClusterImage,
    topics: Sequence[NewTopic],
    *,
    config: BrokerConfig,
    validate_only: bool = False,
    admit: Admit = admit_all,
    new_id: Callable[[], TopicId] = random_uuid,
) -> Decision[list[CreatedTopic]]:
    """One reply per name, in the order of the request; refused topics don't hold up the others."""
    if are_too_many(topics, config):
        message = "Excessively large number of partitions per request."
        return Decision.reply_only([CreatedTopic(each.name, ErrorCode.POLICY_VIOLATION, message) for each in topics])
    times_named = Counter(each.name for each in topics)
    records: list[TopicCreated] = []
    replies: list[CreatedTopic] = []
    described: dict[tuple[tuple[str, str], ...], tuple[ConfigEntry, ...]] = {}
    for topic in {each.name: each for each in topics}.values():
        if times_named[topic.name] > 1:
            replies.append(CreatedTopic(topic.name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
            continue
        created = _create(image, topic, config, start=len(image.topics) + len(records), new_id=new_id)
        if isinstance(created, TopicImage) and not admit(len(created.partitions)):
            created = THROTTLED
        if isinstance(created, Refusal):
            replies.append(CreatedTopic(topic.name, created.error, created.message))
            continue
        records.append(TopicCreated(created))
        key = tuple(sorted(created.configs.items()))
        if key not in described:  # topics that are created together are often configured alike
            described[key] = _described(created, config)
        replies.append(_created_reply(created, described[key]))
    return Decision(records=() if validate_only else tuple(records), reply=replies)


def are_too_many(topics: Sequence[NewTopic], config: BrokerConfig) -> bool:
    """Whether the partitions of one request are more than Kafka allows."""
    default = config.int("num.partitions")
    counts = [
        len(each.assignments) or (default if each.partitions == DEFAULT else max(each.partitions, 0)) for each in topics
    ]
    return sum(counts) > PARTITIONS_PER_REQUEST_MAX


def _described(topic: TopicImage, config: BrokerConfig) -> tuple[ConfigEntry, ...]:
    return tuple(sorted(describe_topic_config(topic.configs, config.layers), key=lambda entry: entry.name))


def _created_reply(topic: TopicImage, configs: tuple[ConfigEntry, ...]) -> CreatedTopic:
    return CreatedTopic(
        name=topic.name,
        topic_id=topic.id,
        partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=configs,
    )


def _create(
    image: ClusterImage, topic: NewTopic, config: BrokerConfig, *, start: int, new_id: Callable[[], TopicId]
) -> TopicImage | Refusal:
    refusal = _refuse_name(image, topic.name) or _refuse_configs(topic, config)
    if refusal is not None:
        return refusal
    partitions = _assigned(image, topic) if topic.assignments else _placed(image, topic, config, start)
    if isinstance(partitions, Refusal):
        return partitions
    configs = {name: value for name, value in topic.configs if value is not None}
    return TopicImage(topic.name, new_id(), tuple(partitions), configs)


def _refuse_name(image: ClusterImage, name: str) -> Refusal | None:
    if name == CLUSTER_METADATA_TOPIC:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
    if name in image.topics:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if may_collide(name) and (others := image.colliding_names.get(collision_key(name))):
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {others[0]}")
    problem = topic_name_problem(name)
    return None if problem is None else Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def _refuse_configs(topic: NewTopic, config: BrokerConfig) -> Refusal | None:
    if not topic.configs:
        return None
    nulls = [name for name, value in topic.configs if value is None]
    if nulls:
        return Refusal(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    values: Mapping[str, str] = {name: value for name, value in topic.configs if value is not None}
    try:
        validate_topic_overrides(values, config.topic_defaults)
    except ConfigError as wrong:
        return Refusal(ErrorCode.INVALID_CONFIG, str(wrong))
    return None


def _assigned(image: ClusterImage, topic: NewTopic) -> list[PartitionImage] | Refusal:
    for given, what in ((topic.replication_factor, "replication factor"), (topic.partitions, "numPartitions")):
        if given != DEFAULT:
            message = f"A manual partition assignment was specified, but {what} was not set to -1."
            return Refusal(ErrorCode.INVALID_REQUEST, message)
    found: dict[int, PartitionImage] = {}
    replicas: int | None = None
    for index, brokers in topic.assignments:
        if index in found:
            message = f"Found multiple manual partition assignments for partition {index}"
            return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        partition = assigned_partition(image, index, brokers, replication_factor=replicas)
        if isinstance(partition, Refusal):
            return partition
        replicas = len(brokers)
        found[index] = partition
    if any(index not in found for index in range(len(found))):
        message = "partitions should be a consecutive 0-based integer sequence"
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return [found[index] for index in range(len(found))]


def _placed(image: ClusterImage, topic: NewTopic, config: BrokerConfig, start: int) -> list[PartitionImage] | Refusal:
    if topic.replication_factor != DEFAULT and topic.replication_factor <= 0:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if topic.partitions != DEFAULT and topic.partitions <= 0:
        message = "Number of partitions was set to an invalid non-positive value."
        return Refusal(ErrorCode.INVALID_PARTITIONS, message)
    partitions = config.int("num.partitions") if topic.partitions == DEFAULT else topic.partitions
    factor = topic.replication_factor
    if factor == DEFAULT:
        factor = config.int("default.replication.factor")
    placed = place(image, partitions=partitions, replication_factor=factor, start=start)
    if isinstance(placed, Unplaceable):
        message = f"Unable to replicate the partition {factor} time(s): {placed.message}"
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    return placed


def may_delete_all(_: str) -> bool:
    """Of a cluster without an authorizer, and of whoever may delete every topic."""
    return True


def decide_delete_topics(
    image: ClusterImage,
    topics: Sequence[TopicReference],
    *,
    config: BrokerConfig,
    admit: Admit = admit_all,
    may_delete: Callable[[str], bool] = may_delete_all,
) -> Decision[list[DeletedTopic]]:
    """One reply per name or id that was given, duplicates once, in the order of the request.

    Whether a topic may be deleted is asked here, by its name, for those that are there: a topic that was not there when
    the request came may have been created meanwhile.
    """
    if not config.flag("delete.topic.enable"):
        error = ErrorCode.TOPIC_DELETION_DISABLED
        return Decision.reply_only([DeletedTopic(each.name, each.topic_id, error, error.message) for each in topics])
    given = Counter(topics)
    replies = list(dict.fromkeys(_delete(image, reference, given, admit, may_delete) for reference in given))
    records = [TopicDeleted(each.topic_id) for each in replies if each.error is ErrorCode.NONE]
    return Decision(records=tuple(records), reply=replies)


def decide_undo_topic(image: ClusterImage, topic_id: TopicId) -> Decision[None]:
    """Take back a topic that was created but can't be made, and never served; also where users may not delete."""
    is_there = topic_id in image.topic_ids
    return Decision(records=(TopicDeleted(topic_id),) if is_there else (), reply=None)


def _delete(
    image: ClusterImage,
    reference: TopicReference,
    given: Counter[TopicReference],
    admit: Admit,
    may_delete: Callable[[str], bool],
) -> DeletedTopic:
    name, topic_id = reference.name, reference.topic_id

    def refuse(error: ErrorCode, message: str | None = None) -> DeletedTopic:
        return DeletedTopic(name, topic_id, error, error.message if message is None else message)

    if name is None and topic_id == ZERO_UUID:
        return refuse(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if name is not None and topic_id != ZERO_UUID:
        return refuse(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if given[reference] > 1:
        return refuse(ErrorCode.INVALID_REQUEST, f"Duplicate topic {'id' if name is None else 'name'}.")
    topic = image.topic_by_id(topic_id) if name is None else image.topics.get(name)
    if topic is None:
        return refuse(ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not may_delete(topic.name):
        return refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)  # with what the client gave: it may not see the other
    by_id, by_name = TopicReference(None, topic.id), TopicReference(topic.name)
    if by_id in given and by_name in given:
        # One answer with both serves the two references, as Kafka gives it.
        message = "The provided topic name maps to an ID that was already supplied."
        return DeletedTopic(topic.name, topic.id, ErrorCode.INVALID_REQUEST, message)
    if not admit(len(topic.partitions)):
        return DeletedTopic(topic.name, topic.id, THROTTLED.error, THROTTLED.message)
    return DeletedTopic(topic.name, topic.id)


def apply_topic_created(draft: Draft, record: TopicCreated) -> None:
    draft.put_topic(record.topic)


def apply_topic_deleted(draft: Draft, record: TopicDeleted) -> None:
    topic = draft.image.topic_by_id(record.topic_id)
    assert topic is not None, "a topic is deleted once, by the controller that knew it"
    draft.remove_topic(topic)
