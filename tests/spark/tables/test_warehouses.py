"""Where Iceberg's tables are: a folder has a catalog in a file, a URL needs one that all can reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.spark.option_values import OptionError
from moldau.spark.tables.iceberg.target import catalog_properties


def test_a_warehouse_at_a_url_is_no_local_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=r"option warehouse='s3a://lake/wh': at a URL it needs a catalog"):
        catalog_properties({"warehouse": "s3a://lake/wh"})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("own", [{"catalog": "lake"}, {"catalog.uri": "http://catalog", "catalog.type": "rest"}])
def test_a_warehouse_at_a_url_goes_to_its_catalog(own: dict[str, str]) -> None:
    found = catalog_properties({"warehouse": "s3a://lake/wh", **own})
    assert found["warehouse"] == "s3a://lake/wh"


def test_a_folder_has_a_catalog_of_its_own(tmp_path: Path) -> None:
    for warehouse in (str(tmp_path / "wh"), f"file://{tmp_path}/wh"):
        assert catalog_properties({"warehouse": warehouse})["warehouse"] == f"file://{tmp_path}/wh"
