"""Streams that stay: what may be a name of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.spark.sql.staying import StayingStreams, StreamFailed


@pytest.mark.parametrize("name", ["a/b", "../up", "", ".hidden", "a b", "été", "x" * 201])
def test_a_name_that_no_topic_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StreamFailed, match="allowed are letters, digits"):
        StayingStreams(tmp_path / "streams").create(name, "select 1", master=None)
    assert list(tmp_path.iterdir()) == []
