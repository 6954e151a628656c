"""An authority with a broker's and a client's certificates, made once."""

from __future__ import annotations

import pytest

from tests.security.tls.world import World, make_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("tls"))
