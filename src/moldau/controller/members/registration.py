"""What a living broker says of itself: the payload of its registration in the metadata store."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from moldau.controller.image import ClusterImage, Endpoint, TopicImage
from moldau.core.ids import TopicId
from moldau.store.store import DescribedEndpoint, Description, Registration


class BrokerRegistration(msgspec.Struct, frozen=True, array_like=True):
    """A broker whose logs are open and that serves. Later versions may add fields at the end, each with a default."""

    id: int
    incarnation: bytes  # random, for each process and for each registration after a lost one
    endpoints: dict[str, Endpoint]
    rack: str | None = None
    directories: dict[str, str] = {}
    wants_shutdown: bool = False
    has_whole_logs: bool = False
    """Whether all that it acknowledged is in its logs: it was stopped cleanly, or killed on a machine that ran on.
    Otherwise it is in no ISR and eligible for nothing until it has fetched what it lacks."""
    lost: dict[TopicId, tuple[int, ...]] = {}
    """Partitions whose logs are gone, as with a new disk: it does not even lead them as the last one that did."""
    out_of_reach: tuple[int, ...] = ()
    """Other brokers of which it heard nothing for as long as a session lasts, although it asks them."""
    goes_on: bool = False
    """Whether this very process was taken in before: what it told of its log directories is as it was."""
    kept: dict[TopicId, tuple[int, ...]] | None = None
    """Instead of `lost`, where it is shorter: all that the cluster has on this broker is lost but these."""
    min_insync_replicas: int = 0
    """What is in its own file, or Kafka's default, for topics without a value of their own."""
    inter_broker_listener: str = ""
    inter_broker_principal: str = ""
    """By which listener of others it asks them, and as whom, for them to know it by."""


LOGGER = logging.getLogger(__name__)

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(BrokerRegistration)


def lost_or_kept(
    image: ClusterImage, broker_id: int, lost: dict[TopicId, tuple[int, ...]]
) -> tuple[dict[TopicId, tuple[int, ...]], dict[TopicId, tuple[int, ...]] | None]:
    """What a registration says of logs that are gone. With its only disk a broker may lose more than a store's node can
    hold, which is 1 MB in ZooKeeper, or some 30,000 topics."""
    if not lost:
        return {}, None
    kept = {
        topic.id: rest
        for topic in image.topics.values()
        if (rest := tuple(without(topic, broker_id, lost.get(topic.id, ()))))
    }
    return (lost, None) if _length(lost) <= _length(kept) else ({}, kept)


def without(topic: TopicImage, broker_id: int, indexes: Collection[int]) -> Iterator[int]:
    """The partitions that a topic has on a broker, but for some."""
    others = frozenset(indexes)
    return (
        index for index, state in enumerate(topic.partitions) if broker_id in state.replicas and index not in others
    )


def _length(partitions: Mapping[TopicId, tuple[int, ...]]) -> int:
    """About as many bytes; an id has 16, and what is around it."""
    return sum(20 + 3 * len(indexes) for indexes in partitions.values())


def encode_registration(registration: BrokerRegistration, *, cluster_id: str = "") -> Registration:
    endpoints = tuple(
        DescribedEndpoint(name, each.security, each.host, each.port) for name, each in registration.endpoints.items()
    )
    described = Description(cluster_id, endpoints, registration.rack)
    return Registration(registration.id, _ENCODER.encode(registration), described)


def serving(registrations: Iterable[Registration]) -> list[BrokerRegistration]:
    """The brokers among the living processes: one that still opens its logs has said nothing yet."""
    found = []
    for each in registrations:
        try:
            if each.payload:
                found.append(_DECODER.decode(each.payload))
        except msgspec.MsgspecError as wrong:
            LOGGER.error("the registration of broker %d can't be read: %s", each.broker_id, wrong)
    return found


def cut_off(registrations: Sequence[BrokerRegistration]) -> frozenset[int]:
    """Brokers that are registered, but out of reach for a majority of all that are, themselves included.

    Two majorities can't be out of each other's reach, so that one of two halves goes on, at most. A broker that has a
    majority out of its reach is cut off itself, and not asked: if no broker hears any other, none of them is the one.
    """
    registered = {each.id for each in registrations}
    majority = len(registered) // 2 + 1
    complaints = [registered.intersection(each.out_of_reach) for each in registrations]
    count = Counter(broker_id for each in complaints if len(each) < majority for broker_id in each)
    return frozenset(broker_id for broker_id in registered if count[broker_id] >= majority)
