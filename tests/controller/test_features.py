from __future__ import annotations

import pytest

from moldau.controller.features import (
    SAFE_DOWNGRADE,
    SUPPORTED,
    TRANSACTION_VERSION,
    UPGRADE,
    FeatureReply,
    FeatureUpdate,
    decide_update_features,
    finalized,
    level_of,
)
from moldau.controller.image import ClusterImage
from moldau.controller.machine import apply, snapshot_records
from moldau.controller.records import FeaturesFinalized, decode_records, encode_records
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode


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
    assert apply(ClusterImage(), decode_records(encode_records(snapshot_records(image)))) == image


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
