from __future__ import annotations

import pytest

from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.controller.machine import apply, snapshot_records
from moldau.controller.records import FeaturesFinalized, decode_records, encode_records
from moldau.controller.settings.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    METADATA_VERSION,
    SAFE_DOWNGRADE,
    SUPPORTED,
    TRANSACTION_VERSION,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    FeatureReply,
    FeatureUpdate,
    decide_update_features,
    finalized,
    level_of,
)
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER
from tests.controller.clusters import cluster, topic_id


def decide(image: ClusterImage, *updates: FeatureUpdate, validate_only: bool = False) -> Decision[FeatureReply]:
    return decide_update_features(image, updates, controller_id=1, validate_only=validate_only)


def lowered(level: int) -> FeatureUpdate:
    return FeatureUpdate(TRANSACTION_VERSION, level, SAFE_DOWNGRADE)


def test_a_new_cluster_is_at_the_highest_level() -> None:
    assert finalized(ClusterImage()) == {name: highest for name, (_, highest) in SUPPORTED.items()}


def test_a_level_that_was_chosen_is_kept_in_the_log_and_in_a_snapshot() -> None:
    decision = decide(ClusterImage(), lowered(1))
    assert decision == Decision((FeaturesFinalized(1, {TRANSACTION_VERSION: 1}),), FeatureReply(ErrorCode.NONE))
    image = apply(ClusterImage(), decision.records)
    assert (level_of(image, TRANSACTION_VERSION), image.features_epoch) == (1, 1)
    assert apply(ClusterImage(), decode_records(encode_records([*snapshot_records(image)]))) == image


def test_every_change_has_an_epoch_so_that_clients_believe_the_newest() -> None:
    image = apply(ClusterImage(), decide(ClusterImage(), lowered(1)).records)
    raised = apply(image, decide(image, FeatureUpdate(TRANSACTION_VERSION, 2)).records)
    assert (level_of(raised, TRANSACTION_VERSION), raised.features_epoch) == (2, 2)


def test_a_feature_at_level_0_is_not_announced() -> None:
    announced = finalized(apply(ClusterImage(), decide(ClusterImage(), lowered(0)).records))
    assert announced.keys() == SUPPORTED.keys() - {TRANSACTION_VERSION}


def test_a_trial_changes_nothing() -> None:
    assert decide(ClusterImage(), lowered(1), validate_only=True) == Decision.reply_only(FeatureReply(ErrorCode.NONE))


@pytest.mark.parametrize(
    "update",
    [
        FeatureUpdate("nonsense", 1),
        FeatureUpdate(TRANSACTION_VERSION, 3),
        FeatureUpdate(TRANSACTION_VERSION, -1),
        FeatureUpdate(TRANSACTION_VERSION, 1, UPGRADE),
        FeatureUpdate(TRANSACTION_VERSION, 2, 9),
    ],
)
def test_one_wrong_update_spoils_all(update: FeatureUpdate) -> None:
    decision = decide(ClusterImage(), lowered(1), update)
    assert (decision.records, decision.reply.error) == ((), ErrorCode.INVALID_UPDATE_VERSION)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (SAFE_DOWNGRADE, "Refusing to perform the requested downgrade because it might delete metadata information."),
        (UNSAFE_DOWNGRADE, "Unsafe metadata downgrade is not supported in this version."),
    ],
)
def test_metadata_has_no_way_down(kind: int, reason: str) -> None:
    assert SUPPORTED[METADATA_VERSION] == (7, 30)
    message = f"Unsupported metadata.version downgrade from 4.3-IV0 to 4.2-IV1. {reason}"
    refused = FeatureReply(ErrorCode.INVALID_UPDATE_VERSION, message)
    assert decide(ClusterImage(), FeatureUpdate(METADATA_VERSION, 29, kind)) == Decision.reply_only(refused)
    same = decide(ClusterImage(), FeatureUpdate(METADATA_VERSION, 30))
    assert same.reply == FeatureReply(ErrorCode.NONE)


def test_without_the_feature_nobody_is_eligible_unless_nobody_else_is_there() -> None:
    led = PartitionImage((1, 2), (1,), 1, elr=(2,))
    lost = PartitionImage((1, 2), (), NO_LEADER, elr=(1, 2), last_known_elr=(1,))
    image = cluster(TopicImage("orders", topic_id(1), (led, lost)), brokers=2)
    off = decide(image, FeatureUpdate(ELIGIBLE_LEADER_REPLICAS_VERSION, 0, SAFE_DOWNGRADE))
    after = apply(image, off.records).topics["orders"].partitions
    assert after == (PartitionImage((1, 2), (1,), 1), lost)
