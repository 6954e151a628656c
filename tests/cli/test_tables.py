"""`moldau tables` as a user runs it: on tables that another library wrote, with errors of one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import run_tool

pa = pytest.importorskip("pyarrow", reason="scripts/test-broker installs nothing of Spark")
deltalake = pytest.importorskip("deltalake", reason="scripts/test-broker installs nothing of Spark")


NO_STORE = tuple(
    f"--option=storage.{option}"
    for option in (
        *("aws_endpoint_url=http://127.0.0.1:1", "aws_allow_http=true", "aws_region=nowhere", "max_retries=0"),
        *("aws_access_key_id=a", "aws_secret_access_key=b"),
    )
)


@pytest.fixture
def orders(tmp_path: Path) -> str:
    path = str(tmp_path / "orders")
    for number in range(4):
        deltalake.write_deltalake(path, pa.table({"id": pa.array([number], pa.int64())}), mode="append")
    return path


def done(*arguments: str) -> str:
    finished = run_tool("", "tables", *arguments)
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


def test_a_table_is_described_optimized_and_vacuumed(orders: str) -> None:
    told = done("describe", orders)
    assert "rows        4" in told
    assert "columns     id int64" in told
    assert json.loads(done("describe", orders, "-o", "json"))["files"] == 4
    assert done("optimize", orders, "--target-file-size", "64m") == "4 files became 1\n"
    assert done("optimize", orders) == "1 files, none of them worth rewriting\n"
    assert done("vacuum", orders, "--dry-run") == "0 files would be removed\n"
    assert done("vacuum", orders, "--older-than", "1h") == "0 files removed\n"
    assert sorted(deltalake.DeltaTable(orders).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("describe", "{}/none"), "there is no Delta table at {}/none"),
        (("describe", "{}", "--table", "shop.orders"), "there is no Iceberg warehouse at {}"),
        (("describe", "sqlite:///{}/none.db"), "a database or a warehouse has many tables: name one with --table"),
        (("optimize", "{}/none", "--target-file-size", "big"), "option targetFileSize = 'big': allowed is a number"),
        (("vacuum", "{}/none", "--older-than", "5m"), "--older-than takes 1h or more"),
        (("vacuum", "{}/none", "--older-than", "soon"), "option older-than = 'soon': allowed is a number and one of"),
        (("vacuum", "{}/none", "--option", "storage"), "--option"),
        (("optimize", "postgresql://moldau@127.0.0.1:1/shop", "-t", "orders"), "a database looks after its tables"),
        (("describe", "s3a://lake/orders", *NO_STORE), "Connection refused"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, arguments: tuple[str, ...], complaint: str) -> None:
    finished = run_tool("", "tables", *(argument.replace("{}", str(tmp_path)) for argument in arguments))
    assert finished.returncode in (1, 2)
    assert finished.stdout == ""
    assert complaint.replace("{}", str(tmp_path)) in finished.stderr
    assert len(finished.stderr.splitlines()) == 1


def test_help_has_examples() -> None:
    finished = run_tool("", "tables", "--help")
    assert finished.stdout.startswith("usage: moldau tables")
    assert "examples:" in finished.stdout
