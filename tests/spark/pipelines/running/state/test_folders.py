"""Where a pipeline's checkpoints, status and lock are, by what its file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.spark.pipelines.plan import Plan
from moldau.spark.pipelines.running.state.folders import PipelineFolder
from moldau.spark.storage import LocalFolder


@pytest.mark.parametrize(
    ("settings", "checkpoints", "state"),
    [
        ({}, "/jobs/.moldau/pipelines/orders/checkpoints", "/jobs/.moldau/pipelines/orders"),
        ({"checkpoint": "s3a://lake/orders/"}, "s3a://lake/orders", "s3a://lake/orders/_moldau"),
        ({"checkpoint": "hdfs://name/orders"}, "hdfs://name/orders", "hdfs://name/orders/_moldau"),
        ({"checkpoint": "kept"}, "/jobs/kept", "/jobs/kept/_moldau"),
        ({"checkpoint": "file:///kept"}, "/kept", "/kept/_moldau"),
        ({"checkpoint": "s3a://lake/orders", "state": "here"}, "s3a://lake/orders", "/jobs/here"),
    ],
)
def test_status_and_lock_are_beside_the_checkpoint(settings: dict[str, str], checkpoints: str, state: str) -> None:
    folder = PipelineFolder(Plan("orders", settings), Path("/jobs"))
    assert (folder.checkpoints, folder.state) == (checkpoints, state)


def test_only_checkpoints_are_forgotten(tmp_path: Path) -> None:
    folder = PipelineFolder(Plan("orders", {"checkpoint": "kept"}), tmp_path)
    for sink in ("lake", "copies"):
        (tmp_path / "kept" / sink).mkdir(parents=True)
    with folder.locked():
        folder.write_status({"queries": {}})
        assert folder.forget_progress() == ["copies", "lake"]
        assert folder.read_status() == {"queries": {}}
        assert folder.holder() is not None
    assert folder.holder() is None


def test_a_status_that_can_not_be_written_ends_no_run(tmp_path: Path) -> None:
    folder = PipelineFolder(Plan("orders"), tmp_path)
    Path(folder.state).parent.mkdir(parents=True)
    Path(folder.state).write_text("a folder can't be here, as on a disk that is full or failed")
    folder.write_status({"queries": {}})
    Path(folder.state).unlink()
    folder.write_status({"queries": {}})
    assert folder.read_status() == {"queries": {}}


def finish_batch(checkpoint: str) -> None:
    LocalFolder(Path(checkpoint)).write("commits/0", b"")


def test_progress_begins_anew_beside_the_old(tmp_path: Path) -> None:
    folder = PipelineFolder(Plan("p"), tmp_path)
    first = folder.checkpoint_of("s")
    assert first == f"{folder.checkpoints}/s"
    assert folder.checkpoint_of("s", anew=True) == first
    finish_batch(first)
    second = folder.checkpoint_of("s", anew=True)
    LocalFolder(Path(second)).write("offsets/0", b"")
    assert second != first
    assert folder.checkpoint_of("s") == first, "a replay without a finished batch changes nothing"
    third = folder.checkpoint_of("s", anew=True)
    assert third not in (first, second)
    finish_batch(third)
    assert folder.checkpoint_of("s") == third
    folder.keep_only("s", third)
    assert [path.name for path in Path(folder.checkpoints).iterdir()] == [Path(third).name]
    assert folder.checkpoint_of("s") == third


def test_progress_is_forgotten_by_sinks(tmp_path: Path) -> None:
    folder = PipelineFolder(Plan("p"), tmp_path)
    for name in ("a", "b"):
        finish_batch(folder.checkpoint_of(name))
    finish_batch(folder.checkpoint_of("a", anew=True))
    assert folder.forget_progress(["a"]) == ["a"]
    assert folder.progress() == ["b"]
    assert folder.forget_progress() == ["b"]
