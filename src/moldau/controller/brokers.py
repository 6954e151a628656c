"""Who the brokers of the cluster are."""

from __future__ import annotations

from msgspec.structs import replace

from moldau.controller.image import BrokerImage, ClusterImage, Draft
from moldau.controller.records import BrokerRegistered
from moldau.core.decision import Decision


def decide_register_broker(image: ClusterImage, broker: BrokerImage) -> Decision[int]:
    """The broker's epoch. A broker that comes back as it was needs no record, so restarts don't fill the log."""
    known = image.brokers.get(broker.id)
    if known is not None and replace(broker, epoch=known.epoch) == known:
        return Decision.reply_only(known.epoch)
    epoch = 1 + max((each.epoch for each in image.brokers.values()), default=0)
    return Decision(records=(BrokerRegistered(replace(broker, epoch=epoch)),), reply=epoch)


def apply_broker_registered(draft: Draft, record: BrokerRegistered) -> None:
    draft.brokers()[record.broker.id] = record.broker
