"""Lake tables in an object store: who tells their libraries the way, and the tables themselves on a server of S3."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.cli.main import main
from moldau.spark.pipelines.plan import Connector, Endpoint
from moldau.spark.pipelines.running.frames.table_stores import table_options
from moldau.spark.tables.delta.target import delta_target, readable_delta
from moldau.spark.tables.iceberg.target import catalog_properties, iceberg_target, readable_iceberg
from moldau.spark.tables.object_stores import access_by_environment, access_by_spark, filled, with_region
from moldau.spark.tables.reading import TableReader
from moldau.spark.tables.staging import StagingArea
from moldau.spark.tables.writing import Step, Target
from tests.spark.object_store import ObjectStore, running_object_store
from tests.spark.tables.frames import batch, frame, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("tables")

COLUMNS = "id bigint, region string"
BUCKET = "lake"
VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with running_object_store() as running:
        running.create_bucket(BUCKET)
        yield running


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A place of its own to start from: what is taken for a folder by mistake is found there."""
    for name in (*VARIABLES, "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def environment(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)


def test_a_setting_of_the_bucket_goes_before_that_of_all() -> None:
    settings = {
        "spark.hadoop.fs.s3a.endpoint": "store:9000",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": "key",
        "spark.hadoop.fs.s3a.secret.key": "secret",
        "spark.hadoop.fs.s3a.bucket.lake.endpoint": "https://other:9000",
    }
    assert access_by_spark("s3a://lake/orders", settings.get).for_iceberg() == {
        "s3.endpoint": "https://other:9000",
        "s3.access-key-id": "key",
        "s3.secret-access-key": "secret",
    }
    assert access_by_spark("s3a://pond/orders", settings.get).for_delta() == {
        "aws_endpoint_url": "http://store:9000",
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_allow_http": "true",
    }
    assert "secret" not in repr(access_by_spark("s3a://pond/orders", settings.get)).replace("secret_key", "")


def test_what_a_table_says_itself_is_not_mixed_with_what_is_found() -> None:
    variables = {"AWS_ACCESS_KEY_ID": "theirs", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
    found = access_by_environment({**variables, "AWS_DEFAULT_REGION": "eu-central-1", "AWS_ENDPOINT_URL": ""})
    own = {"access_key_id": "ours", "secret_access_key": "o"}
    assert filled(own, found.for_delta()) == {**own, "aws_region": "eu-central-1"}
    assert filled({"s3.region": "us-west-1"}, found.for_iceberg()) == {
        "s3.region": "us-west-1",
        "s3.access-key-id": "theirs",
        "s3.secret-access-key": "s",
        "s3.session-token": "t",
    }


def test_a_store_of_ones_own_needs_no_region() -> None:
    assert with_region({"aws_endpoint_url": "http://store"}, "aws_region")["aws_region"] == "us-east-1"
    assert with_region({"endpoint": "http://store", "region": "here"}, "aws_region") == {
        "endpoint": "http://store",
        "region": "here",
    }
    assert with_region({}, "aws_region") == {}


def test_a_catalog_with_a_name_has_its_settings_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert catalog_properties({"catalog": "lake"}) == {}
    named = {"catalog.uri": "http://catalog", "catalog.rest.signing-region": "us-west-1"}
    assert catalog_properties(named)["s3.region"] == "eu-central-1"


def options_of(kind: str, scheme: str, folder: Path, name: str) -> dict[str, str]:
    if kind == "delta":
        return {"path": f"{scheme}://{BUCKET}/{name}"}
    catalog = {"catalog.type": "sql", "catalog.uri": f"sqlite:///{folder}/catalog.db?timeout=60"}
    return {"warehouse": f"{scheme}://{BUCKET}/warehouse", "table": f"shop.{name.replace('-', '_')}", **catalog}


def target_of(kind: str, options: dict[str, str], **more: str) -> Target:
    make = delta_target if kind == "delta" else iceberg_target
    return make({name.lower(): value for name, value in {**options, **more}.items()}, frame(COLUMNS))


def ids(kind: str, options: dict[str, str]) -> list[int]:
    readable = (readable_delta if kind == "delta" else readable_iceberg)(options)
    reader = TableReader(readable, frame(COLUMNS), {})
    return sorted(each for part in reader.partitions() for rows in reader.read(part) for each in rows["id"].to_pylist())


def parquet_files(store: ObjectStore, options: dict[str, str]) -> set[str]:
    name = options.get("path", options.get("table", "")).rpartition("/")[2].rpartition(".")[2]
    return {each for each in store.names(BUCKET) if name in each and each.endswith(".parquet")}


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.usefixtures("environment")
def test_a_table_has_all_that_it_has_in_a_folder(store: ObjectStore, tmp_path: Path, kind: str, scheme: str) -> None:
    options = options_of(kind, scheme, tmp_path, f"orders-{kind}-{scheme}")
    target = target_of(kind, options)
    for number in range(3):
        write(target, number, batch(COLUMNS, (number, "north")), batch(COLUMNS, (10 + number, "south")))
    write(target, 2, batch(COLUMNS, (2, "again")))
    given_up = StagingArea("another query", 0)
    target.discard([target.stage([batch(COLUMNS, (99, "north"))], given_up)], given_up)
    assert (ids(kind, options), len(parquet_files(store, options))) == ([0, 1, 2, 10, 11, 12], 6)
    # A store has no folders, and nothing is made in their place. Where Arrow deletes an object it leaves an empty one
    # for the folder, as for batch 2, which ran again.
    assert not [name for name in store.names(BUCKET) if name.endswith("/1/")]
    upserts = target_of(kind, options, keys="id", mergeSchema="true")
    write(upserts, 3, batch(COLUMNS, (0, "moved"), (20, "new")))
    assert ids(kind, options) == [0, 1, 2, 10, 11, 12, 20]
    assert not [path for path in tmp_path.iterdir() if path.name != "catalog.db"]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.usefixtures("environment")
def test_of_drivers_with_the_same_batch_one_counts(tmp_path: Path, kind: str) -> None:
    options, area = options_of(kind, "s3a", tmp_path, "raced"), StagingArea("a query", 0)
    target = target_of(kind, options)
    staged = [[target.stage([batch(COLUMNS, (1, "north"), (2, "south"))], area)] for _ in range(3)]
    drivers = [threading.Thread(target=target.apply, args=(each, Step(area, overwrite=False))) for each in staged]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert ids(kind, options) == [1, 2]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.usefixtures("environment")
def test_a_table_is_looked_after(
    store: ObjectStore, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = options_of(kind, "s3a", tmp_path, f"tended-{kind}")
    target = target_of(kind, options)
    for number in range(4):
        write(target, number, batch(COLUMNS, (number, "north")))
    named = [options["path"]] if kind == "delta" else [options["warehouse"], "--table", options["table"]]
    own = [f"--option={key}={value}" for key, value in options.items() if key.startswith("catalog.")]

    def tables(action: str, *words: str) -> str:
        assert main(["tables", action, *named, *own, *words]) == 0
        return capsys.readouterr().out

    told: dict[str, Any] = json.loads(tables("describe", "-o", "json"))
    assert (told["format"], told["rows"], told["files"]) == (kind, 4, 4)
    assert tables("optimize") == "4 files became 1\n"
    assert "0 files" in tables("vacuum", "--older-than", "1h")
    assert (ids(kind, options), len(parquet_files(store, options))) == ([0, 1, 2, 3], 5)
    assert not [path for path in tmp_path.iterdir() if path.name != "catalog.db"]


@pytest.mark.usefixtures("environment")
def test_what_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "describe", "s3a://lake/nowhere"]) == 2
    assert capsys.readouterr().err == "moldau tables: there is no Delta table at s3a://lake/nowhere\n"


@pytest.mark.long
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_pipeline_passes_on_what_spark_is_told(
    spark: SparkSession, store: ObjectStore, tmp_path: Path, kind: str
) -> None:
    options = options_of(kind, "s3a", tmp_path, "passed-on")
    endpoint = (
        Endpoint(Connector.DELTA, options["path"])
        if kind == "delta"
        else Endpoint(Connector.ICEBERG, options.pop("table"), options)
    )
    for key, value in store.spark_settings.items():
        spark.conf.set(key, value)
    try:
        found = table_options(endpoint, spark)
    finally:
        for key in store.spark_settings:
            spark.conf.unset(key)
    where = {"path": endpoint.location} if kind == "delta" else {"table": endpoint.location}
    rows = spark.range(20).selectExpr("id", "'north' as region").repartition(4)
    rows.write.format(f"moldau_{kind}").options(**where, **found).mode("append").save()
    read = spark.read.format(f"moldau_{kind}").options(**where, **found).load()
    assert sorted(row.id for row in read.collect()) == list(range(20))
