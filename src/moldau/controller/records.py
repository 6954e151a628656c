"""The facts of the metadata log and their bytes.

A record is an array whose first item is its tag, so a later version may add fields at the end, each with a default.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Sequence

import msgspec

from moldau.controller.image import BrokerImage, PartitionImage, QuotaEntity, TopicImage
from moldau.core.ids import AclId, TopicId
from moldau.core.limits import KIB
from moldau.security.acls.bindings import Acl
from moldau.security.delegation_tokens import DelegationToken
from moldau.security.sasl.scram.credential import ScramCredential, ScramMechanism


class ClusterCreated(msgspec.Struct, frozen=True, array_like=True, tag="cluster"):
    cluster_id: str


class BrokerRegistered(msgspec.Struct, frozen=True, array_like=True, tag="broker"):
    broker: BrokerImage


class BrokerUnregistered(msgspec.Struct, frozen=True, array_like=True, tag="broker-"):
    broker_id: int


class BrokerEpochsGiven(msgspec.Struct, frozen=True, array_like=True, tag="broker-epochs"):
    """The highest epoch that any broker ever had, in snapshots: a broker that comes back must get a higher one."""

    epoch_max: int


class TopicCreated(msgspec.Struct, frozen=True, array_like=True, tag="topic"):
    topic: TopicImage


class TopicDeleted(msgspec.Struct, frozen=True, array_like=True, tag="topic-"):
    topic_id: TopicId


class PartitionsAdded(msgspec.Struct, frozen=True, array_like=True, tag="partition+"):
    topic_id: TopicId
    partitions: tuple[PartitionImage, ...]


class PartitionsRemoved(msgspec.Struct, frozen=True, array_like=True, tag="partition-"):
    """The topic has `count` partitions again: those that were added could not be made, and never served."""

    topic_id: TopicId
    count: int


class PartitionsChanged(msgspec.Struct, frozen=True, array_like=True, tag="partitions"):
    """Partitions of one topic as they are from now on, by index: the loss of one broker changes thousands."""

    topic_id: TopicId
    partitions: dict[int, PartitionImage]


class LeadersChanged(msgspec.Struct, frozen=True, array_like=True, tag="leaders"):
    """Partitions of one topic get another leader, or none; the epochs of each grow by one."""

    topic_id: TopicId
    leader: int
    indexes: tuple[int, ...]


class TopicConfigsChanged(msgspec.Struct, frozen=True, array_like=True, tag="topic-config"):
    """A value of None takes the key away."""

    topic_id: TopicId
    changes: dict[str, str | None]


class BrokerConfigsChanged(msgspec.Struct, frozen=True, array_like=True, tag="broker-config"):
    """`broker` is empty for all brokers; a value of None takes the key away."""

    broker: str
    changes: dict[str, str | None]


class GroupConfigsChanged(msgspec.Struct, frozen=True, array_like=True, tag="group-config"):
    """A value of None takes the key away. A group need not exist to be configured."""

    group_id: str
    changes: dict[str, str | None]


class ClientMetricsConfigsChanged(msgspec.Struct, frozen=True, array_like=True, tag="client-metrics-config"):
    """A value of None takes the key away. A subscription without any value is none."""

    name: str
    changes: dict[str, str | None]


class ScramCredentialSet(msgspec.Struct, frozen=True, array_like=True, tag="scram"):
    user: str
    mechanism: ScramMechanism
    credential: ScramCredential


class ScramCredentialRemoved(msgspec.Struct, frozen=True, array_like=True, tag="scram-"):
    user: str
    mechanism: ScramMechanism


class DelegationTokenSet(msgspec.Struct, frozen=True, array_like=True, tag="token"):
    """A new token, or one that expires at another time from now on."""

    token: DelegationToken


class DelegationTokenRemoved(msgspec.Struct, frozen=True, array_like=True, tag="token-"):
    token_id: str


class ClientQuotasChanged(msgspec.Struct, frozen=True, array_like=True, tag="quota"):
    """A value of None takes the key away."""

    entity: QuotaEntity
    changes: dict[str, float | None]


class ProducerIdsAllocated(msgspec.Struct, frozen=True, array_like=True, tag="producer-ids"):
    next_producer_id: int


class FeaturesFinalized(msgspec.Struct, frozen=True, array_like=True, tag="features"):
    """All levels that were ever chosen; the epoch grows with every choice."""

    epoch: int
    levels: dict[str, int]


class AclCreated(msgspec.Struct, frozen=True, array_like=True, tag="acl"):
    id: AclId
    acl: Acl


class AclDeleted(msgspec.Struct, frozen=True, array_like=True, tag="acl-"):
    id: AclId


Record = (
    ClusterCreated
    | BrokerRegistered
    | BrokerUnregistered
    | BrokerEpochsGiven
    | TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | PartitionsRemoved
    | PartitionsChanged
    | LeadersChanged
    | TopicConfigsChanged
    | BrokerConfigsChanged
    | GroupConfigsChanged
    | ClientMetricsConfigsChanged
    | ScramCredentialSet
    | ScramCredentialRemoved
    | DelegationTokenSet
    | DelegationTokenRemoved
    | ClientQuotasChanged
    | ProducerIdsAllocated
    | FeaturesFinalized
    | AclCreated
    | AclDeleted
)

SLICE_BYTES = 256 * KIB  # encoding that much takes some milliseconds

ARRAY = 0xDD  # of msgpack, with a length of 32 bits
ARRAY_HEADER = struct.Struct(">BI")

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Record])


class UnknownRecord(Exception):
    """Bytes that this version can't read: a newer one wrote them, or they are damaged."""


def encode_records(records: Sequence[Record]) -> bytes:
    return _ENCODER.encode(records)


async def encode_in_slices(records: Iterable[Record]) -> bytes:
    """The same for a whole cluster, which would hold the loop for long."""
    payload = bytearray(ARRAY_HEADER.size)
    count = slice_bytes = 0
    for record in records:
        encoded = _ENCODER.encode(record)
        payload += encoded
        count += 1
        slice_bytes += len(encoded)
        if slice_bytes >= SLICE_BYTES:
            slice_bytes = 0
            await asyncio.sleep(0)
    ARRAY_HEADER.pack_into(payload, 0, ARRAY, count)
    return bytes(payload)


def decode_records(payload: bytes) -> list[Record]:
    try:
        return _DECODER.decode(payload)
    except msgspec.MsgspecError as wrong:
        raise UnknownRecord(f"a metadata record that this version can't read: {wrong}") from wrong
