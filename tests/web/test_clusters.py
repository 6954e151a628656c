"""Connections that are lent: what keeps one from being made is an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.web.clusters import Clusters
from moldau.web.errors import ApiError


def test_a_file_that_went_is_told_of(tmp_path: Path) -> None:
    settings = {"bootstrap.servers": "localhost:1", "security.protocol": "ssl", "ssl.ca.location": str(tmp_path / "ca")}
    clusters = Clusters(settings, timeout_s=1.0)
    with pytest.raises(ApiError, match="needed are files that are there") as told:
        clusters.ask(lambda cluster: cluster.metadata([]))
    assert told.value.status == 503
