from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import count

import pytest

from moldau.node.garbage import COLLECTION_S_MAX, keep_collections_short


@pytest.fixture
def collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    callbacks = list(gc.callbacks)
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks
    gc.unfreeze()


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize(("takes_s", "is_set_aside"), [(COLLECTION_S_MAX / 2, False), (COLLECTION_S_MAX * 2, True)])
def test_what_survives_a_long_collection_is_set_aside(takes_s: float, is_set_aside: bool) -> None:
    gc.unfreeze()
    ticks = count()
    keep_collections_short(lambda: next(ticks) * takes_s)
    gc.collect(1)
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert (gc.get_freeze_count() > 0) is is_set_aside
