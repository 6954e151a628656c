"""Questions of other brokers about thousands of partitions: the controller decides some hundred of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from moldau.controller.image import ClusterImage
from moldau.controller.partitions.leaders import ELECTIONS_MAX
from moldau.controller.runtime import Controller
from moldau.coordinator.long_work import chunks
from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode

Q = TypeVar("Q")
A = TypeVar("A")


async def decided(
    controller: Controller,
    questions: Iterable[Q],
    decide: Callable[[ClusterImage, Sequence[Q]], Decision[list[A] | ErrorCode]],
) -> list[A]:
    """An answer to each, in their order; raises ApiError for an error of all: the broker who asks is judged."""
    answers: list[A] = []
    for some in [*chunks(questions, ELECTIONS_MAX)] or [[]]:  # the broker is judged in any case

        def decide_some(image: ClusterImage, some: list[Q] = some) -> Decision[list[A] | ErrorCode]:
            return decide(image, some)

        reply = await controller.write(decide_some)
        if isinstance(reply, ErrorCode):
            raise ApiError(reply)
        answers += reply
    return answers
