"""A project's specification: found by file or folder, and what is wrong with one in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.spark.pipelines.declarative.project import is_project, load_project, spec_file_of, spec_of, versions_of
from moldau.spark.pipelines.plan import PipelineError

pytest.importorskip("yaml", reason="the extra `pipelines` is not installed")

SPEC = """\
name: shop
storage: file:///tmp/shop
libraries:
  - glob:
      include: transformations/**
configuration:
  shop.servers: localhost:9092
"""


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "spark-pipeline.yml"
    path.write_text(SPEC)
    return path


def test_by_file_and_by_folder(spec_file: Path) -> None:
    assert is_project(spec_file)
    assert is_project(spec_file.parent)
    assert not is_project(Path("orders.sql"))
    assert load_project(spec_file) == load_project(spec_file.parent)
    assert load_project(spec_file).name == "shop"


def test_settings_of_the_command_line_go_first(spec_file: Path) -> None:
    spec = spec_of(load_project(spec_file, {"shop.servers": "elsewhere:9092", "spark.sql.shuffle.partitions": "2"}))
    assert spec.configuration == {"shop.servers": "elsewhere:9092", "spark.sql.shuffle.partitions": "2"}


@pytest.mark.parametrize("names", [[], ["spark-pipeline.yml", "spark-pipeline.yaml"]])
def test_a_folder_has_one_specification(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text(SPEC)
    with pytest.raises(PipelineError, match=r"spark-pipeline\.yml and spark-pipeline\.yaml"):
        spec_file_of(tmp_path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "name, storage and libraries were expected"),
        ("name: [\n", r"spark-pipeline\.yml:2: no YAML"),
        ("storage: x\n", "name: None is no name"),
        ("name: a/b\n", "name: 'a/b' is no name"),
        ("name: shop\n", "PIPELINE_SPEC_MISSING_REQUIRED_FIELD"),
        (SPEC + "surprise: 1\n", "surprise"),
        (SPEC.replace("localhost:9092", "9092"), "shop.servers"),
        (SPEC.replace("transformations/**", "a/**/*.py"), r"Only file paths, or folder paths ending with"),
        ("name: shop\nstorage: file:///x\nlibraries:\n  - transformations/**\n", "libraries: expected a list"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(spec_file: Path, text: str, reason: str) -> None:
    spec_file.write_text(text)
    with pytest.raises(PipelineError, match=reason) as wrong:
        spec_of(load_project(spec_file))
    assert "\n" not in str(wrong.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="can't be read"):
        load_project(tmp_path / "spark-pipeline.yml")


def test_a_change_of_any_file_is_seen(spec_file: Path) -> None:
    project, folder = load_project(spec_file), spec_file.parent / "transformations" / "inner"
    folder.mkdir(parents=True)
    (folder / "a.sql").write_text("select 1")
    before = versions_of(project)
    assert versions_of(project) == before
    cache = folder / "__pycache__"
    cache.mkdir()
    (cache / "a.pyc").write_text("Python's own")
    (spec_file.parent / "notes.txt").write_text("no part of it")
    assert versions_of(project) == before
    (folder / "a.sql").write_text("select 22")
    changed = versions_of(project)
    assert changed != before
    spec_file.write_text("name: [\n")
    assert versions_of(project) not in (before, changed)
    for pattern in ("/elsewhere/**", ""):
        spec_file.write_text(SPEC.replace("transformations/**", f"'{pattern}'"))
        assert len(versions_of(project)) == 1
