"""Whatever comes, a schema's author gets InvalidSchema, and soon; `python -m tests.schemas.fuzzing` has long runs."""

from __future__ import annotations

import pytest

from tests.schemas.fuzzing import fuzz


@pytest.mark.parametrize("seed", [1, 2])
def test_noise(seed: int) -> None:
    assert not list(fuzz(iter(range(400)), seed))
