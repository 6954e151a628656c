"""UpdateFeatures, v0 to v2: raise or lower the levels of the cluster's features, all that are named or none.

v0 says only whether a downgrade is allowed, v1 which kind it is and whether it is a trial, and v2 has one error for
all instead of one for each feature.
"""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.controller.features import (
    SAFE_DOWNGRADE,
    UPGRADE,
    FeatureReply,
    FeatureUpdate,
    decide_update_features,
)
from moldau.core.errors import ApiError, ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

ONE_ERROR_SINCE = 2


@api(ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest, versions=(0, 2))
async def update_features(request: UpdateFeaturesRequest, context: Context) -> UpdateFeaturesResponse:
    updates = [_update(each, context.version) for each in request.feature_updates]
    services = context.services
    try:
        reply = await services.controller.write(
            lambda image: decide_update_features(
                image, updates, controller_id=services.broker_id, validate_only=request.validate_only
            )
        )
    except ApiError as wrong:
        reply = FeatureReply(wrong.code, wrong.message)
    return _response(reply, updates, context.version)


def _update(wanted: FeatureUpdateKey, version: int) -> FeatureUpdate:
    if version > 0:
        return FeatureUpdate(wanted.feature, wanted.max_version_level, wanted.upgrade_type)
    return FeatureUpdate(
        wanted.feature, wanted.max_version_level, SAFE_DOWNGRADE if wanted.allow_downgrade else UPGRADE
    )


def _response(reply: FeatureReply, updates: list[FeatureUpdate], version: int) -> UpdateFeaturesResponse:
    if reply.error is ErrorCode.NONE:
        results = [UpdatableFeatureResult(each.feature, ErrorCode.NONE, None) for each in updates]
        return UpdateFeaturesResponse(error_message=None, results=results)
    message = (
        f"The update failed for all features since the following feature had an error: {reply.message}"
        if updates
        else reply.message
    )
    if version >= ONE_ERROR_SINCE:
        return UpdateFeaturesResponse(error_code=reply.error, error_message=message)
    results = [UpdatableFeatureResult(each.feature, reply.error, reply.message) for each in updates]
    return UpdateFeaturesResponse(error_message=None, results=results)
