"""`min.insync.replicas` as leaders go by it: the controller must know below which ISR nothing is committed.

Whoever leaves a smaller ISR stays eligible (KIP-966). A leader whose own minimum is lower than the controller's would
go on committing without it. Brokers have the key in their files, which are changed one after the other, so what each
has there is in its registration. Apache Kafka sets the key for the whole cluster instead.
"""

from __future__ import annotations

from moldau.controller.image import ClusterImage, TopicImage
from moldau.core.config.broker import BROKER_CONFIGS
from moldau.core.config.definitions import ConfigError

MIN_ISR = "min.insync.replicas"


def min_isr_of(topic: TopicImage, least: int | None) -> int | None:
    """What any leader of the topic goes by, or less; `least` is that of topics without a value of their own."""
    own = _parsed(topic.configs.get(MIN_ISR))
    return least if own is None else own


def least_min_isr(image: ClusterImage) -> int | None:
    """Of the brokers that may lead; None where none of them told."""
    for_all = _parsed(image.broker_config("").get(MIN_ISR))
    found = [
        _parsed(image.broker_config(str(broker.id)).get(MIN_ISR)) or for_all or broker.min_insync_replicas
        for broker in image.active_brokers()
    ]
    return min(filter(None, found), default=None)


def _parsed(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        value = BROKER_CONFIGS[MIN_ISR].parse(text)
    except ConfigError:  # of another version; the broker goes by what it has without it
        return None
    assert isinstance(value, int)
    return value
