"""UpdateFeatures, v0 to v2: raise or lower the levels of the cluster's features, all that are named or none.

v0 can only upgrade: it may say that a downgrade is allowed, which Apache Kafka ignores too. v1 says which kind it is
and whether it is a trial; v2 leaves out the results of each feature, which all versions have only without an error.
"""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import in_thread
from moldau.controller.settings.features import (
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


@api(ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest, versions=(0, 2), forwarded=True)
async def update_features(request: UpdateFeaturesRequest, context: Context) -> UpdateFeaturesResponse:
    services = context.services
    updates = await in_thread(lambda: [_update(each, context.version) for each in request.feature_updates], context)
    try:
        reply = await services.controller.write(
            lambda image: decide_update_features(
                image, updates, controller_id=services.broker_id, validate_only=request.validate_only
            )
        )
    except ApiError as wrong:
        reply = FeatureReply(wrong.code, wrong.message)
    return _response(reply, updates)


def _update(wanted: FeatureUpdateKey, version: int) -> FeatureUpdate:
    if version > 0:
        return FeatureUpdate(wanted.feature, wanted.max_version_level, wanted.upgrade_type)
    return FeatureUpdate(wanted.feature, wanted.max_version_level, UPGRADE)


def _response(reply: FeatureReply, updates: list[FeatureUpdate]) -> UpdateFeaturesResponse:
    if reply.error is ErrorCode.NONE:
        results = [UpdatableFeatureResult(each.feature, ErrorCode.NONE, "NONE") for each in updates]
        return UpdateFeaturesResponse(error_message=None, results=results)
    message = f"The update failed for all features since the following feature had an error: {reply.message}"
    return UpdateFeaturesResponse(error_code=reply.error, error_message=message)
