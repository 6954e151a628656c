"""Streams that stay: what may be a name of one, and what is left of one that did not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.spark.sql.staying import StayingStreams, StreamFailed

SOURCE = """\
set bootstrap.servers = 'nobody:1';
create stream a from topic 'a';
create sink b into topic 'b' as select * from a;
"""


@pytest.mark.parametrize("name", ["a/b", "../up", "", ".hidden", "a b", "été", "x" * 201])
def test_a_name_that_no_topic_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StreamFailed, match="allowed are letters, digits"):
        StayingStreams(tmp_path / "streams").create(name, "select 1", master=None)
    assert list(tmp_path.iterdir()) == []


def test_one_that_did_not_start_leaves_no_progress_to_the_next_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    streams = tmp_path / "streams"
    checkpoints = streams / ".moldau" / "pipelines" / "b" / "checkpoints"
    (checkpoints / "b" / "offsets").mkdir(parents=True)  # as by an attempt that failed in its first batch
    with pytest.raises(StreamFailed, match="Java"):
        StayingStreams(streams).create("b", SOURCE, master=None)
    assert not (streams / "b.sql").exists()
    assert list(checkpoints.iterdir()) == []
