"""DescribeClientQuotas, v0 and v1, which differ in their encoding: any broker answers from its image."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, by_size
from moldau.controller.image import ClusterImage, QuotaEntity
from moldau.controller.settings.quotas import QuotaComponent, describe_client_quotas
from moldau.core.errors import ApiError, ErrorCode
from moldau.security.acls.vocabulary import CLUSTER_NAME, AclOperation, ResourceType
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


@api(ApiKey.DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest, versions=(0, 1))
def describe_quotas(
    request: DescribeClientQuotasRequest, context: Context
) -> DescribeClientQuotasResponse | Coroutine[Any, Any, Encoded[DescribeClientQuotasResponse]]:
    if not context.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        return _refused(ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."))
    image = context.services.image
    return by_size(lambda: _described(request, image), len(image.client_quotas), context)


def _described(request: DescribeClientQuotasRequest, image: ClusterImage) -> DescribeClientQuotasResponse:
    wanted = (QuotaComponent(each.entity_type, each.match_type, each.match) for each in request.components)
    try:
        return _response(describe_client_quotas(image, wanted, strict=request.strict))
    except ApiError as wrong:
        return _refused(wrong)


def _refused(wrong: ApiError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=wrong.code, error_message=wrong.message, entries=None)


def _response(found: list[tuple[QuotaEntity, Mapping[str, float]]]) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(
        entries=[
            EntryData(
                [EntityData(entity_type, name) for entity_type, name in entity],
                [ValueData(key, value) for key, value in values.items()],
            )
            for entity, values in found
        ],
    )
