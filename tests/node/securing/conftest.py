"""One secured broker for all tests of this folder that leave it as it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.node.securing.secured import Secured, running_secured


@pytest.fixture(scope="package")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with running_secured(tmp_path_factory.mktemp("keys")) as running:
        yield running
