"""Lock and status of a project: beside its storage, or beside the project where that is out of reach."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.spark.pipelines.declarative.places import beside_project, beside_storage, find_folder, hold_folder
from moldau.spark.pipelines.declarative.project import Project, load_project
from moldau.spark.pipelines.running.state.folders import PipelineFolder
from moldau.spark.pipelines.running.state.locks import AlreadyRunning
from moldau.spark.storage import Folder, LocalFolder, StorageFailed, folder_without_session, is_url
from tests.spark.object_store import PACKAGES_SETTINGS, running_object_store

pytest.importorskip("yaml", reason="the extra `pipelines` is not installed")

FAR = "s3a://lake/shop"


def project_at(folder: Path, storage: str) -> Project:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "spark-pipeline.yml"
    path.write_text(f"name: shop\nstorage: {storage}\nconfiguration:\n  spark.hadoop.fs.s3a.endpoint: http://store\n")
    return load_project(path, {"spark.jars": "mine.jar"})


@pytest.fixture
def two(tmp_path: Path) -> tuple[Project, Project]:
    """One project on two machines, as far as paths go."""
    storage = f"file://{tmp_path}/storage"
    return project_at(tmp_path / "one", storage), project_at(tmp_path / "other", storage)


def locally(url: str) -> Folder:
    return LocalFolder(Path(url))


def gone(url: str) -> Folder:
    raise StorageFailed(f"{url}: the store does not answer")


def silent(line: str) -> None:
    raise AssertionError(line)


def note(folder: PipelineFolder, updated_ms: int) -> None:
    folder.write_status({"updated_ms": updated_ms, "queries": {}}, at_once=True)


def noted_ms(folder: PipelineFolder) -> int | None:
    status = folder.read_status()
    return None if status is None else int(status["updated_ms"])


@pytest.mark.parametrize(
    ("storage", "state"),
    [
        ("file:///kept/shop/", "/kept/shop/_moldau/shop"),
        ("file:/kept", "/kept/_moldau/shop"),
        ("/kept", "/kept/_moldau/shop"),
        ("s3a://lake/shop/", "s3a://lake/shop/_moldau/shop"),
        ("hdfs://name/all", "hdfs://name/all/_moldau/shop"),
    ],
)
def test_state_is_beside_the_storage(tmp_path: Path, storage: str, state: str) -> None:
    assert beside_storage(project_at(tmp_path, storage)).state == state


def test_a_relative_storage_counts_from_the_project(tmp_path: Path) -> None:
    assert beside_storage(project_at(tmp_path, "kept")).state == f"{tmp_path}/kept/_moldau/shop"


def test_logs_stay_beside_the_project(tmp_path: Path) -> None:
    project = project_at(tmp_path, FAR)
    assert beside_storage(project).log == project.home / "spark.log"


def test_a_store_is_reached_with_the_settings_of_file_and_command_line(tmp_path: Path) -> None:
    settings = {"spark.hadoop.fs.s3a.endpoint": "http://store", "spark.jars": "mine.jar"}
    assert project_at(tmp_path, FAR).configuration == settings


def test_a_copy_is_refused_sees_the_run_and_can_end_it(two: tuple[Project, Project]) -> None:
    one, other = two
    with hold_folder(one, None, reach=locally, say=silent) as folder:
        note(folder, 5)
        with (
            pytest.raises(AlreadyRunning, match=f"process {os.getpid()} on .* runs this pipeline already"),
            hold_folder(other, None, reach=locally, say=silent),
        ):
            pass
        seen = find_folder(other, say=silent)
        assert (noted_ms(seen), seen.holder()) == (5, folder.holder())
        assert not list(one.home.glob("lock-*"))
    assert find_folder(other, say=silent).holder() is None
    with hold_folder(other, None, reach=locally, say=silent):
        pass


def test_projects_of_other_names_share_a_storage(two: tuple[Project, Project]) -> None:
    one, other = two
    with (
        hold_folder(one, None, reach=locally, say=silent),
        hold_folder(replace(other, name="returns"), None, reach=locally, say=silent),
    ):
        assert find_folder(one, say=silent).holder() is not None


def test_a_dead_lock_beside_the_project_is_nobodys(two: tuple[Project, Project]) -> None:
    """As earlier versions, and runs that could not reach the storage, leave them when they are killed."""
    one, _ = two
    old = LocalFolder(one.home)
    old.write("lock-00000007", b'{"token": "t", "host": "h", "pid": 1, "machine": "m", "born": "1", "renewed_ms": 0}')
    old.write("lock-00000008", b"")
    note(beside_project(one), 3)
    assert noted_ms(find_folder(one, say=silent)) == 3
    with hold_folder(one, None, reach=locally, say=silent) as folder:
        note(folder, 4)
        assert find_folder(one, say=silent).holder() is not None
    assert noted_ms(find_folder(one, say=silent)) == 4


def test_a_run_that_holds_a_lock_beside_the_project_is_respected_and_found(two: tuple[Project, Project]) -> None:
    one, _ = two
    note(beside_storage(one, locally), 9)
    with beside_project(one).locked():
        note(beside_project(one), 3)
        with pytest.raises(AlreadyRunning, match=f"process {os.getpid()} on "):
            hold_folder(one, None, reach=locally, say=silent).__enter__()
        seen = find_folder(one, say=silent)
        assert (noted_ms(seen), seen.holder() is not None) == (3, True)
    assert noted_ms(find_folder(one, say=silent)) == 9


def test_a_storage_that_does_not_answer_ends_a_run_of_ours(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="s3a://lake/shop/_moldau/shop: the store does not answer"):
        hold_folder(project_at(tmp_path, FAR), None, reach=gone, say=silent).__enter__()


def test_a_look_at_a_storage_that_does_not_answer_says_so(tmp_path: Path) -> None:
    project, said = project_at(tmp_path, FAR), list[str]()
    with pytest.raises(StorageFailed, match="the store does not answer"):
        find_folder(project, say=said.append, reach=gone)
    note(beside_project(project), 3)
    assert noted_ms(find_folder(project, say=said.append, reach=gone)) == 3
    assert said == [
        "s3a://lake/shop/_moldau/shop: the store does not answer; "
        "shown is what the newest run from here noted beside the project"
    ]


def test_the_newer_of_two_runs_is_shown(tmp_path: Path) -> None:
    project = project_at(tmp_path, FAR)

    def reach(url: str) -> Folder:
        assert is_url(url)
        return LocalFolder(tmp_path / "store")

    note(beside_project(project), 3)
    assert noted_ms(find_folder(project, say=silent, reach=reach)) == 3
    note(beside_storage(project, reach), 4)
    assert noted_ms(find_folder(project, say=silent, reach=reach)) == 4


def without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.parametrize(
    ("storage", "master", "reason"),
    [
        ("file:///kept", "sc://head:15002/;token=hidden", "/kept/_moldau/shop is a path of head, where the Connect"),
        (FAR, "sc://localhost:15002", f"{FAR}/_moldau/shop: it is reached through Java"),
    ],
)
def test_over_connect_a_storage_that_only_the_server_reaches_leaves_the_lock_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str, master: str, reason: str
) -> None:
    without_java(monkeypatch)
    project, said = project_at(tmp_path, storage), list[str]()
    with hold_folder(project, master, reach=gone, say=said.append) as folder:
        assert folder.state == str(project.home)
        (line,) = said
        assert line.startswith(f"pipeline shop: {reason}")
        assert line.endswith("and runs from other folders or machines are not refused")
        assert "hidden" not in line
        with pytest.raises(AlreadyRunning):
            hold_folder(project, master, reach=gone, say=said.append).__enter__()
        assert find_folder(project, say=silent).state == folder.state


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_a_connect_server_of_this_machine_has_its_paths(two: tuple[Project, Project], host: str) -> None:
    one, other = two
    with hold_folder(one, f"sc://{host}:15002", reach=gone, say=silent) as folder:
        assert folder.state == beside_storage(one).state
        with pytest.raises(AlreadyRunning):
            hold_folder(other, None, reach=locally, say=silent).__enter__()


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(1200)
def test_an_object_store_has_lock_and_status_for_all_machines(tmp_path: Path) -> None:
    one, other = project_at(tmp_path / "one", FAR), project_at(tmp_path / "other", FAR)
    with running_object_store() as store:
        store.create_bucket("lake")
        settings = {**PACKAGES_SETTINGS, **store.spark_settings}

        def reach(url: str) -> Folder:
            return folder_without_session(url, settings)

        assert noted_ms(find_folder(other, say=silent, reach=reach)) is None
        with hold_folder(one, None, reach=reach, say=silent) as folder:
            note(folder, 5)
            names = ["shop/_moldau/shop/lock-00000001", "shop/_moldau/shop/status.json"]
            assert store.names("lake") == names
            with pytest.raises(AlreadyRunning, match=f"process {os.getpid()} on "):
                hold_folder(other, None, reach=reach, say=silent).__enter__()
            seen = find_folder(other, say=silent, reach=reach)
            assert (noted_ms(seen), seen.holder() is not None) == (5, True)
        assert find_folder(other, say=silent, reach=reach).holder() is None
        assert store.names("lake") == names[1:]
