"""What follows from brokers that come, go, fail or want to stop: their epochs, and other leaders and a smaller ISR.

There are no heartbeats: a broker lives as long as its registration in the metadata store does. A process that was
fenced stays so; to be taken in again it has to register anew, as another incarnation under a higher epoch.

The loss of a broker changes thousands of partitions, so it is done in steps, each of which may be several decisions and
is right whatever a controller before this one had done of it:

1. brokers that are gone, or replaced by a new incarnation, are fenced; those that want to stop are marked;
2. partitions are settled: whoever is not active leaves the ISR, and others lead;
3. what brokers that come back lost, they are not eligible for, and the log directories that they have are not offline,
   unless their processes went on;
4. they are taken in, with a higher epoch;
5. partitions are settled again: those without a leader may have one now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from moldau.controller.image import BrokerImage, ClusterImage, Draft, TopicImage
from moldau.controller.members.brokers import apply_broker_registered, next_broker_epoch
from moldau.controller.members.registration import BrokerRegistration, without
from moldau.controller.partitions.changes import Target
from moldau.controller.partitions.edits import PartitionEdits
from moldau.controller.partitions.states import Refusal, apply_partitions_changed
from moldau.controller.records import BrokerRegistered, BrokerUnregistered, PartitionsChanged, Record
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER, TopicId

SCANNED_MAX = 20_000  # partitions that one decision looks at: some milliseconds
CHANGED_MAX = 500  # partitions that one decision changes: the same

Registrations: TypeAlias = Sequence[BrokerRegistration]


class Cursor(NamedTuple):
    """How far partitions were gone through: the place of a topic among the names, and of a partition in it."""

    topic: int = 0
    partition: int = 0


START = Cursor()


class Returning(NamedTuple):
    """Brokers that are about to be taken in, those of them whose processes are new and have opened their directories,
    those that may lack committed records, and which logs are gone."""

    broker_ids: frozenset[int]
    started: frozenset[int]
    not_whole: frozenset[int]
    lost: Mapping[TopicId, Mapping[int, frozenset[int]]]
    """By topic and partition, the brokers that lost it."""


def decide_follow_registrations(
    image: ClusterImage, registrations: Registrations, *, controller_id: int, config: BrokerConfig
) -> Decision[None]:
    """Make the cluster what the living brokers say it is, all steps at once; nothing, if it is that already."""
    draft = Draft(image)
    records: list[Record] = []

    def take(facts: Sequence[Record]) -> None:
        for fact in facts:
            if isinstance(fact, BrokerRegistered):
                apply_broker_registered(draft, fact)
            elif isinstance(fact, PartitionsChanged):
                apply_partitions_changed(draft, fact)
        records.extend(facts)

    fenced = decide_fence_missing(image, registrations, controller_id=controller_id)
    take(fenced.records)
    if fenced.records:
        take(_all(draft.image, _SETTLING, config).records)
    coming = returning(draft.image, registrations, controller_id=controller_id)
    if coming.broker_ids:
        take(_all(draft.image, _restoring(coming), config).records)
        take(decide_take_in(draft.image, registrations, controller_id=controller_id).records)
        take(_all(draft.image, _SETTLING, config).records)
    return Decision(records=tuple(records), reply=None)


def decide_fence_broker(image: ClusterImage, broker_id: int, *, broker_epoch: int) -> Decision[bool]:
    """Fence a process that is known to be dead, before its registration is gone; whether it was not fenced before.

    Its partitions are to be settled then.
    """
    known = image.brokers.get(broker_id)
    if known is None or known.epoch != broker_epoch or known.fenced:
        return Decision.reply_only(False)
    return Decision((BrokerRegistered(replace(known, fenced=True)),), reply=True)


def decide_unregister_broker(image: ClusterImage, broker_id: int, *, config: BrokerConfig) -> Decision[Refusal | None]:
    """Forget a broker that is gone. One that lives would be taken in again at once, and lose what it leads for it."""
    known = image.brokers.get(broker_id)
    if known is None:
        message = f"Broker ID {broker_id} is not currently registered"
        return Decision.reply_only(Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, message))
    if not known.fenced:
        message = f"Broker ID {broker_id} is running; stop the broker before it is unregistered"
        return Decision.reply_only(Refusal(ErrorCode.INVALID_REQUEST, message))
    left = {each: broker for each, broker in image.brokers.items() if each != broker_id}
    edits = PartitionEdits(image, config, brokers=left)
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if broker_id in state.isr or broker_id in state.elr:
                isr = tuple(each for each in state.isr if each != broker_id)
                edits.change(topic, index, Target(isr=isr, not_whole=(broker_id,)))
    return Decision((*edits.records(), BrokerUnregistered(broker_id)), reply=None)


def decide_fence_missing(
    image: ClusterImage, registrations: Registrations, *, controller_id: int
) -> Decision[list[BrokerImage]]:
    """Step 1, and what brokers say of themselves that changes nothing for others. The reply are those that changed."""
    living = {registration.id: registration for registration in registrations}
    if _is_alone(image, controller_id) and living.keys() <= {controller_id}:
        return Decision.reply_only([])
    changed = [
        after
        for known in image.brokers.values()
        if (after := _as_registered(image, known, living.get(known.id), controller_id)) != known
    ]
    return Decision(tuple(BrokerRegistered(broker) for broker in changed), reply=changed)


def _is_alone(image: ClusterImage, controller_id: int) -> bool:
    """As long as a broker is alone, its start and its stop are its own affair: what it led before it leads again."""
    return image.brokers.keys() == {controller_id}


def _as_registered(
    image: ClusterImage, known: BrokerImage, registration: BrokerRegistration | None, controller_id: int
) -> BrokerImage:
    is_own = _is_alone(image, controller_id)
    if registration is None or (registration.incarnation != known.incarnation and not is_own):
        return known if is_own else replace(known, fenced=True)
    is_stopping = known.in_controlled_shutdown or registration.wants_shutdown
    return replace(_image_of(registration, known.epoch), fenced=known.fenced, in_controlled_shutdown=is_stopping)


def _image_of(registration: BrokerRegistration, epoch: int) -> BrokerImage:
    return BrokerImage(
        id=registration.id,
        endpoints=registration.endpoints,
        rack=registration.rack,
        epoch=epoch,
        directories=registration.directories,
        incarnation=registration.incarnation,
        in_controlled_shutdown=registration.wants_shutdown,
        min_insync_replicas=registration.min_insync_replicas,
        inter_broker_listener=registration.inter_broker_listener,
        inter_broker_principal=registration.inter_broker_principal,
    )


def returning(image: ClusterImage, registrations: Registrations, *, controller_id: int) -> Returning:
    """The brokers that step 4 takes in."""
    new = _new(image, registrations, controller_id)
    return Returning(
        frozenset(each.id for each in new),
        started=frozenset(each.id for each in new if not each.goes_on),
        not_whole=frozenset(each.id for each in new if not each.has_whole_logs),
        lost=_lost(image, new),
    )


def _lost(image: ClusterImage, registrations: Registrations) -> Mapping[TopicId, Mapping[int, frozenset[int]]]:
    found: dict[TopicId, dict[int, frozenset[int]]] = {}
    for each in registrations:
        for topic_id, indexes in _lost_by(image, each):
            for index in indexes:
                of_topic = found.setdefault(topic_id, {})
                of_topic[index] = of_topic.get(index, frozenset()) | {each.id}
    return found


def _lost_by(image: ClusterImage, registration: BrokerRegistration) -> Iterator[tuple[TopicId, Iterable[int]]]:
    kept = registration.kept
    if kept is None:
        yield from registration.lost.items()
        return
    for topic in image.topics.values():
        yield topic.id, without(topic, registration.id, kept.get(topic.id, ()))


def decide_take_in(image: ClusterImage, registrations: Registrations, *, controller_id: int) -> Decision[list[int]]:
    """Step 4: the brokers that are new, or new incarnations; the reply are their ids."""
    new = _new(image, registrations, controller_id)
    epoch = next_broker_epoch(image)
    records = [BrokerRegistered(_image_of(each, epoch + number)) for number, each in enumerate(new)]
    return Decision(tuple(records), reply=[each.id for each in new])


def _new(image: ClusterImage, registrations: Registrations, controller_id: int) -> list[BrokerRegistration]:
    """One that is not fenced yet is taken in when what it was before is settled, which is a step of its own."""
    if _is_alone(image, controller_id):
        return [each for each in registrations if each.id != controller_id]
    return [
        each
        for each in registrations
        if (known := image.brokers.get(each.id)) is None or (known.fenced and known.incarnation != each.incarnation)
    ]


def decide_settle(
    image: ClusterImage, names: Sequence[str], *, config: BrokerConfig, start: Cursor = START
) -> Decision[Cursor | None]:
    """Steps 2 and 5: a limited number of partitions. The reply is where to go on, or None at the end of the names."""
    return _some(image, names, start, _SETTLING, config)


def decide_restore(
    image: ClusterImage, names: Sequence[str], coming: Returning, *, config: BrokerConfig, start: Cursor = START
) -> Decision[Cursor | None]:
    """Step 3, in the same way."""
    return _some(image, names, start, _restoring(coming), config)


class _Pass(NamedTuple):
    """One way through partitions: those that it is about, and what becomes of them."""

    find: Callable[[TopicImage, PartitionEdits], Iterator[int]]
    target: Callable[[TopicImage, int, PartitionEdits], Target]


def _some(
    image: ClusterImage, names: Sequence[str], start: Cursor, way: _Pass, config: BrokerConfig
) -> Decision[Cursor | None]:
    edits = PartitionEdits(image, config)
    scanned = changed = 0
    for place in range(start.topic, len(names)):
        topic = image.topics.get(names[place])
        if topic is None:
            continue
        if scanned >= SCANNED_MAX:
            return Decision(edits.records(), reply=Cursor(place))
        scanned += len(topic.partitions)
        for index in way.find(topic, edits):
            if place == start.topic and index < start.partition:
                continue
            if changed >= CHANGED_MAX:
                return Decision(edits.records(), reply=Cursor(place, index))
            changed += edits.change(topic, index, way.target(topic, index, edits))
    return Decision(edits.records(), reply=None)


def _all(image: ClusterImage, way: _Pass, config: BrokerConfig) -> Decision[None]:
    edits = PartitionEdits(image, config)
    for topic in image.topics.values():
        for index in way.find(topic, edits):
            edits.change(topic, index, way.target(topic, index, edits))
    return Decision(edits.records(), reply=None)


def _unsettled(topic: TopicImage, edits: PartitionEdits) -> Iterator[int]:
    able = edits.able
    return (
        index
        for index, state in enumerate(topic.partitions)
        if state.leader == NO_LEADER or not able.issuperset(state.isr)
    )


def _settled(topic: TopicImage, index: int, edits: PartitionEdits) -> Target:
    return Target(isr=tuple(each for each in topic.partitions[index].isr if each in edits.able))


_SETTLING = _Pass(_unsettled, _settled)


def _restoring(coming: Returning) -> _Pass:
    def find(topic: TopicImage, _: PartitionEdits) -> Iterator[int]:
        lost = coming.lost.get(topic.id, {})
        return (
            index
            for index, state in enumerate(topic.partitions)
            if (state.offline and not coming.started.isdisjoint(state.offline))
            or (state.elr and not coming.not_whole.isdisjoint(state.elr))
            or index in lost
        )

    def target(topic: TopicImage, index: int, _: PartitionEdits) -> Target:
        offline = tuple(each for each in topic.partitions[index].offline if each not in coming.started)
        lost = coming.lost.get(topic.id, {}).get(index, frozenset())
        return Target(offline=offline, not_whole=coming.not_whole | lost, lost=lost)

    return _Pass(find, target)
