"""`moldau pipeline` with a project of Spark's own Declarative Pipelines, as a user runs it."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.brokers import PROJECT
from tests.cli.conftest import Tool
from tests.cli.pipeline.test_command import running, wait_for

pytest.importorskip("pyspark", reason="scripts/test-broker installs nothing of Spark")
pytest.importorskip("yaml", reason="the extra `pipelines` is not installed")

MASTER = ("--master", "local[2]")


@pytest.fixture
def project(bootstrap: str, topic: str, tmp_path: Path) -> Path:
    """The example, with topics, a group and a storage of the test's own."""
    folder = tmp_path / "shop"
    shutil.copytree(PROJECT / "examples" / "shop", folder)
    spec, orders = folder / "spark-pipeline.yml", folder / "transformations" / "orders.py"
    storage = f"file://{tmp_path}/storage"
    spec.write_text(spec.read_text().replace("file:///tmp/moldau-shop", storage).replace("localhost:9092", bootstrap))
    mine = orders.read_text().replace('"orders")\n        .opt', f'"{topic}")\n        .opt')
    orders.write_text(mine.replace("shop-orders", f"{topic}-group").replace("large-orders", f"{topic}-large"))
    return folder


def order(number: int, amount: float) -> str:
    return json.dumps({"id": f"o-{number}", "customer": "ada", "amount": amount, "at": "2026-01-31T12:00:00Z"}) + "\n"


def customers(folder: Path) -> list[tuple[str, int, float]]:
    import pyarrow.dataset as ds

    table = ds.dataset(folder / "spark-warehouse" / "customers", format="parquet").to_table()
    return [(row["customer"], row["orders"], row["amount"]) for row in table.to_pylist()]


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(900)
def test_the_life_of_a_project(
    bootstrap: str, tool: Tool, done: Callable[..., str], project: Path, topic: str, tmp_path: Path
) -> None:
    def row(name: str = "orders") -> dict[str, object]:
        told = tool("pipeline", "status", str(project), "-o", "json")
        rows = json.loads(told.stdout) if told.returncode == 0 else []
        return next((dict(one) for one in rows if one["query"] == name), {})

    def large() -> list[str]:
        return done("consume", f"{topic}-large", "-b", "-e", "-X", "isolation.level=read_committed").splitlines()

    done("topics", "create", f"{topic}-large")
    done("produce", topic, stdin=order(1, 120) + "no order\n" + order(2, 7))
    said, view = tmp_path / "run.err", project / "transformations" / "customers.sql"
    with running(bootstrap, "run", str(project), "--every", "1s", *MASTER, error=said) as process:
        wait_for(lambda: (row().get("rows"), row().get("rejected")) == (3, {topic: 1}), "three records")
        assert (row()["state"], row()["lag"]) == ("running", 0)
        assert row("send_large_orders")["into"] == f"topic {topic}-large"
        second = tool("pipeline", "run", str(project))
        assert second.returncode == 1
        assert "runs this pipeline already" in second.stderr
        wait_for(lambda: len(large()) == 1, "the large order")
        # A file that is broken while the project runs is told, and taken again when it is mended.
        sound = view.read_text()
        view.write_text("CREATE MATERIALIZED VIEW customers AS SELEC 1")
        wait_for(lambda: "is tried again" in said.read_text(), "a failed update")
        view.write_text(sound)
        done("produce", topic, stdin=order(3, 200))
        wait_for(lambda: len(large()) == 2, "the second large order")
        wait_for(lambda: (row().get("state"), row().get("rows")) == ("running", 4), "four records")
        assert int(str(row()["restarts"])) >= 1
        assert done("pipeline", "stop", str(project)) == "pipeline shop stopped\n"
        assert process.wait(60) == 0
    assert (
        "shop: the update failed and is tried again in 1 s: transformations/customers.sql: [PARSE" in said.read_text()
    )
    assert "Traceback" not in said.read_text()
    assert row()["state"] == "stopped"
    # What Spark knows of its tables outlives it.
    done("produce", topic, stdin=order(4, 300))
    with running(bootstrap, "run", str(project), "--once", *MASTER, error=said) as process:
        assert process.wait(600) == 0, said.read_text()
    assert [json.loads(each)["id"] for each in large()] == ["o-1", "o-3", "o-4"]
    assert customers(project) == [("ada", 4, 627.0)]
    assert (row()["state"], row()["rows"], row()["lag"]) == ("done", 1, 0)


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(900)
def test_a_spark_that_dies_ends_it(bootstrap: str, tool: Tool, project: Path, tmp_path: Path) -> None:
    said = tmp_path / "run.err"
    with running(bootstrap, "run", str(project), "--every", "1s", *MASTER, error=said) as process:
        wait_for(lambda: "orders" in tool("pipeline", "status", str(project)).stdout, "an update")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        (jvm,) = [int(each) for each in children if "java" in Path(f"/proc/{each}/cmdline").read_text()]
        os.kill(jvm, signal.SIGKILL)
        assert process.wait(120) == 1
    assert "shop: Spark is gone" in said.read_text()
    assert "Traceback" not in said.read_text()
    assert "failed" in tool("pipeline", "status", str(project)).stdout


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("arguments", "code", "query", "reason"),
    [
        (("check",), 2, "SELECT nope FROM orders", "customers: [UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
        (("run",), 1, "SELECT nope FROM orders", "shop: spark_catalog.default.customers: [UNRESOLVED_COLUMN"),
        (
            ("run", "--once", "--set", "spark.sql.pipelines.maxFlowRetryAttempts=0"),
            1,
            "SELECT assert_true(id < 0) FROM range(1)",
            "shop: the update failed: spark_catalog.default.customers: '(id < 0)' is not true!",
        ),
    ],
)
def test_a_wrong_project_ends_with_a_line(
    bootstrap: str, project: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, query: str, reason: str
) -> None:
    sql = project / "transformations" / "customers.sql"
    sql.write_text(f"CREATE MATERIALIZED VIEW customers AS {query}")
    said = tmp_path / "run.err"
    with running(bootstrap, *arguments, str(project), *MASTER, error=said) as process:
        assert process.wait(400) == code, said.read_text()
    assert reason in said.read_text()
    assert "Traceback" not in said.read_text()


def test_what_needs_no_spark(tool: Tool, done: Callable[..., str], project: Path) -> None:
    checked = done("pipeline", "check", "--quick", str(project))
    assert checked.startswith("pipeline shop: the specification is sound")
    spec = project / "spark-pipeline.yml"
    for arguments, code, reason in (
        (("status", str(project)), 1, f"pipeline shop has not run yet; start it with: moldau pipeline run {spec}"),
        (("stop", str(spec)), 1, "pipeline shop is not running"),
        (("reset", str(spec)), 2, f"moldau pipeline run {spec} --full-refresh all"),
        (("run", str(project), "--every", "soon"), 2, "--every: 'soon' is no duration"),
        (("run", str(project), "--every", "1s", "--once"), 2, "--once and --every exclude each other"),
    ):
        refused = tool("pipeline", *arguments)
        assert refused.returncode == code
        assert reason in refused.stderr
        assert "Traceback" not in refused.stderr
