"""Questions that are asked together, and what becomes of those that nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from moldau.broker.gathered_questions import GatheredQuestions

BROKER = 2


@pytest.mark.parametrize("turns", [0, 1])
def test_every_question_has_an_answer_when_all_is_over(turns: int) -> None:
    """Also when it is over before the first was asked."""

    async def silent(_: int, questions: Sequence[str]) -> Sequence[str]:
        await asyncio.Event().wait()
        return questions

    async def test() -> list[str]:
        gathered = GatheredQuestions(silent, failed="failed")
        answers = [gathered.put(BROKER, "first")]
        for _ in range(turns):
            await asyncio.sleep(0)
        answers.append(gathered.put(BROKER, "second"))
        await gathered.close()
        async with asyncio.timeout(5):
            return list(await asyncio.gather(*answers))

    assert asyncio.run(test()) == ["failed", "failed"]
