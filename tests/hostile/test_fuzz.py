"""Noise of every API and version beside a client whose answers are checked; `scripts/fuzz` has long runs."""

from __future__ import annotations

import moldau
from moldau.wire.messages.registry import REQUESTS
from tests.hostile.fuzz import fuzz

FRAMES = 8_000
SEED = 20_260


def test_noise_gets_answers_and_harms_nobody() -> None:
    with moldau.run() as broker:
        result = fuzz(broker, frames=FRAMES, seed=SEED)
    assert not result.trouble, "\n".join(result.trouble[:10])
    assert result.frames >= FRAMES
    assert result.neighbour_answers > 100
    unanswered = {cls.__name__ for cls in REQUESTS} - result.answered.keys()
    assert not unanswered, "noise that is never answered finds nothing"
