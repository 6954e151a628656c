"""Who the brokers of the cluster are."""

from __future__ import annotations

from msgspec.structs import replace

from moldau.controller.image import BrokerImage, ClusterImage, Draft
from moldau.controller.partitions.min_isr import least_min_isr
from moldau.controller.partitions.states import clear_elrs
from moldau.controller.records import BrokerEpochsGiven, BrokerRegistered, BrokerUnregistered
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode


def decide_register_broker(image: ClusterImage, broker: BrokerImage) -> Decision[int]:
    """The broker's epoch, of one that is alone: if it comes back as it was, restarts don't fill the log."""
    known = image.brokers.get(broker.id)
    if known is not None and replace(broker, epoch=known.epoch, incarnation=known.incarnation) == known:
        return Decision.reply_only(known.epoch)
    epoch = next_broker_epoch(image)
    return Decision(records=(BrokerRegistered(replace(broker, epoch=epoch)),), reply=epoch)


def next_broker_epoch(image: ClusterImage) -> int:
    return 1 + image.broker_epoch_max


def broker_epoch_problem(image: ClusterImage, broker_id: int, broker_epoch: int) -> ErrorCode:
    """Whether a request comes from the process that is registered, and not from one that it replaced."""
    known = image.brokers.get(broker_id)
    return ErrorCode.NONE if known is not None and known.epoch == broker_epoch else ErrorCode.STALE_BROKER_EPOCH


def apply_broker_registered(draft: Draft, record: BrokerRegistered) -> None:
    before = least_min_isr(draft.image)
    draft.brokers()[record.broker.id] = record.broker
    after = least_min_isr(draft.image)
    if before is not None and after is not None and after < before:
        clear_elrs(draft)
    if record.broker.epoch > draft.image.broker_epoch_max:
        draft.set(broker_epoch_max=record.broker.epoch)


def apply_broker_unregistered(draft: Draft, record: BrokerUnregistered) -> None:
    del draft.brokers()[record.broker_id]


def apply_broker_epochs_given(draft: Draft, record: BrokerEpochsGiven) -> None:
    draft.set(broker_epoch_max=record.epoch_max)
