"""A broker to attack, one per module, with records that must survive."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import moldau
from tests.hostile.siege import KEPT, Victim


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    with moldau.run() as broker:
        attacked = Victim(broker)
        attacked.create(KEPT)
        assert attacked.produce(KEPT, attacked.kept_records) == 0
        yield attacked
