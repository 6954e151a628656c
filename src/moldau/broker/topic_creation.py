"""Creating topics because somebody asked about them."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.broker.context import Services
from moldau.controller.topics import NewTopic, decide_create_topics
from moldau.core.errors import ApiError, ErrorCode


async def auto_create(services: Services, names: Iterable[str]) -> dict[str, ErrorCode]:
    """Create the topics with the broker's defaults; gives the errors of those that could not be."""
    wanted = [NewTopic(name) for name in names]
    try:
        created = await services.controller.write(
            lambda image: decide_create_topics(image, wanted, config=services.config)
        )
    except ApiError as wrong:
        return {topic.name: wrong.code for topic in wanted}
    # Somebody else may have created it since we looked.
    fine = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    return {topic.name: topic.error for topic in created if topic.error not in fine}
