"""The levels of the cluster's features: what all brokers have agreed to do, so that clients may rely on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from moldau.controller.image import ClusterImage, Draft
from moldau.controller.partitions.states import clear_elrs
from moldau.controller.records import FeaturesFinalized
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.metadata_versions import METADATA, metadata_name

METADATA_VERSION = METADATA
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"

# Lowest and highest level that this release knows; a cluster begins at the highest.
SUPPORTED: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        METADATA_VERSION: (7, 30),
        TRANSACTION_VERSION: (0, 2),
        GROUP_VERSION: (0, 1),
        ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
    }
)


UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class FeatureUpdate(NamedTuple):
    feature: str
    level: int
    upgrade_type: int = UPGRADE


class FeatureReply(NamedTuple):
    error: ErrorCode
    message: str | None = None


def level_of(image: ClusterImage, feature: str) -> int:
    return image.features.get(feature, SUPPORTED[feature][1])


def has_consumer_groups(image: ClusterImage, config: BrokerConfig) -> bool:
    """The cluster must have agreed to it, and the broker's configuration must not forbid it."""
    return level_of(image, GROUP_VERSION) >= 1 and "consumer" in config.items("group.coordinator.rebalance.protocols")


def finalized(image: ClusterImage) -> dict[str, int]:
    """As it is announced: a feature at level 0 is one that is off."""
    levels = {feature: level_of(image, feature) for feature in SUPPORTED}
    return {feature: level for feature, level in levels.items() if level > 0}


def decide_update_features(
    image: ClusterImage, updates: Sequence[FeatureUpdate], *, controller_id: int, validate_only: bool
) -> Decision[FeatureReply]:
    """All of them, or none."""
    for update in updates:
        message = _refusal(image, update, controller_id) or _metadata_refusal(image, update)
        if message is not None:
            return Decision.reply_only(FeatureReply(ErrorCode.INVALID_UPDATE_VERSION, message))
    levels = {**image.features, **{update.feature: update.level for update in updates}}
    if validate_only or not updates:
        return Decision.reply_only(FeatureReply(ErrorCode.NONE))
    return Decision((FeaturesFinalized(image.features_epoch + 1, levels),), FeatureReply(ErrorCode.NONE))


def _refusal(image: ClusterImage, update: FeatureUpdate, controller_id: int) -> str | None:
    reason = _reason(image, update, controller_id)
    return None if reason is None else f"Invalid update version {update.level} for feature {update.feature}. {reason}"


def _reason(image: ClusterImage, update: FeatureUpdate, controller_id: int) -> str | None:
    feature, level, upgrade_type = update
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    if feature not in SUPPORTED:
        return f"Local controller {controller_id} does not support this feature."
    lowest, highest = SUPPORTED[feature]
    if not lowest <= level <= highest:
        return f"Local controller {controller_id} only supports versions {lowest}-{highest}"
    current = level_of(image, feature)
    if level < current and upgrade_type == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if level > current and upgrade_type != UPGRADE:
        return "Can't downgrade to a newer version."
    return None


def _metadata_refusal(image: ClusterImage, update: FeatureUpdate) -> str | None:
    current = level_of(image, METADATA_VERSION)
    if update.feature != METADATA_VERSION or update.level >= current:
        return None
    # The metadata of the highest can't be told in the words of any other, as in Apache Kafka 4.3: there is no way down.
    before, after = (metadata_name(level) for level in (current, update.level))
    reason = (
        "Unsafe metadata downgrade is not supported in this version."
        if update.upgrade_type == UNSAFE_DOWNGRADE
        else "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    return f"Unsupported metadata.version downgrade from {before} to {after}. {reason}"


def apply_features_finalized(draft: Draft, record: FeaturesFinalized) -> None:
    draft.set(features=record.levels, features_epoch=record.epoch)
    if level_of(draft.image, ELIGIBLE_LEADER_REPLICAS_VERSION) == 0:
        clear_elrs(draft)
