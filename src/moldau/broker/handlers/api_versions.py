"""ApiVersions, v0 to v4: what this broker answers, derived from the handler table.

The reply always has the oldest header, and a request of a version that we don't know is still answered, in the oldest
layout, so that a newer client can find out what we speak (KIP-511).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from moldau.broker.api import Api, api
from moldau.broker.context import Context
from moldau.broker.network.outbox import Part
from moldau.controller.settings.features import SUPPORTED, finalized
from moldau.core.errors import ErrorCode
from moldau.core.limits import TELEMETRY_CLIENT_TEXT_BYTES_MAX
from moldau.core.text import cut
from moldau.wire.api import ApiKey
from moldau.wire.codec import encoder
from moldau.wire.frame import response_parts
from moldau.wire.messages import ApiVersionsRequest, ApiVersionsResponse
from moldau.wire.messages.api_versions import ApiVersion, FinalizedFeatureKey, SupportedFeatureKey

LEVEL_0_SINCE = 4  # older clients fail on a feature whose lowest level is 0
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# librdkafka decides which compression types it may use by the lowest Produce version, so Apache Kafka goes on
# announcing versions that it stopped answering; we announce, and refuse, the same.
_ANNOUNCED_FROM = {ApiKey.PRODUCE: 0}


def announced(table: Iterable[Api]) -> list[ApiVersion]:
    return [
        ApiVersion(
            api_key=row.key, min_version=_ANNOUNCED_FROM.get(row.key, row.versions[0]), max_version=row.versions[1]
        )
        for row in sorted(table, key=lambda row: row.key)
    ]


def unsupported_version(correlation_id: int, known: Iterable[ApiVersion]) -> list[Part]:
    """A client of the future learns which versions of this very API it may use."""
    asked = [version for version in known if version.api_key == ApiKey.API_VERSIONS]
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=asked)
    body: list[Part] = []
    encoder(ApiVersionsResponse, 0)(response, body)
    return response_parts(correlation_id, body, is_flexible=False)


@api(ApiKey.API_VERSIONS, ApiVersionsRequest, versions=(0, 4))
def api_versions(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    if context.version >= 3:
        named = (request.client_software_name, request.client_software_version)
        if not all(_SOFTWARE.fullmatch(name) for name in named):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        name, version = (cut(each, TELEMETRY_CLIENT_TEXT_BYTES_MAX) for each in named)
        context.peer.client.software_name, context.peer.client.software_version = name, version
    image = context.services.controller.image
    return ApiVersionsResponse(
        api_keys=context.services.api_versions,
        supported_features=[
            SupportedFeatureKey(name, lowest, highest)
            for name, (lowest, highest) in SUPPORTED.items()
            if lowest > 0 or context.version >= LEVEL_0_SINCE
        ],
        # Kafka's epoch is the offset of the metadata that a broker has, which moves with every change of them.
        finalized_features_epoch=context.services.controller.position,
        finalized_features=[FinalizedFeatureKey(name, level, level) for name, level in finalized(image).items()],
    )
