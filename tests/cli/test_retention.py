"""`moldau retention` as a person and as cron run it, and what a pipeline says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Tool
from tests.spark.topics import Topics

PIPELINE = """\
create stream numbers from topic '{topic}' with (valueFormat = json, valueSchema = 'n bigint');
create sink copies into topic '{topic}-copies' as select n from numbers;
"""


@pytest.fixture
def short_lived(done: Callable[..., str], moldau_topic: str) -> str:
    """A topic of one partition that keeps its records for two hours."""
    done("topics", "create", moldau_topic, "--partitions", "1", "--config", "retention.ms=7200000")
    done("produce", moldau_topic, stdin='{"n": 1}\n{"n": 2}\n')
    return moldau_topic


def test_cron_is_told_by_the_exit_code(tool: Tool, bootstrap: str, short_lived: str) -> None:
    group = f"{short_lived}-readers"
    nobody = tool("retention", group)
    assert (nobody.returncode, nobody.stderr) == (1, ""), nobody
    assert "no offsets of it can be seen" in nobody.stdout
    Topics(bootstrap).commit(group, short_lived, 0)
    enough = tool("retention", group, "--within", "1h", "-o", "json")
    assert enough.returncode == 0, enough.stderr
    (row,) = json.loads(enough.stdout)
    assert (row["topic"], row["partition"], row["unread"], row["verdict"]) == (short_lived, 0, 2, "ok")
    assert 3_600_000 < row["left_ms"] <= 7_200_000
    too_little = tool("retention", group, "--within", "3h")
    assert too_little.returncode == 1
    assert "2 unread, the first may go in 1 h 59 min" in too_little.stdout
    held = tool("retention", group, "--within", "3h", "--hold")
    assert held.returncode == 0
    assert f"{short_lived}: retention.ms is " in held.stderr
    Topics(bootstrap).commit(group, short_lived, 2)
    after = tool("retention", group, "--within", "3h", "--hold")
    assert (after.returncode, after.stderr) == (0, f"{short_lived}: released; retention.ms is 7200000\n")
    assert tool("retention").returncode == 2
    assert tool("retention", group, "--within", "soon").returncode == 2


def test_a_pipeline_warns_where_it_is_looked_at(tool: Tool, bootstrap: str, short_lived: str, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="scripts/test-broker installs nothing of Spark")
    from moldau.spark.pipelines.loading import load
    from moldau.spark.pipelines.running.state.folders import PipelineFolder

    file = tmp_path / "numbers.sql"
    file.write_text(PIPELINE.format(topic=short_lived))
    Topics(bootstrap).commit("moldau-spark-numbers.copies", short_lived, 1)
    found = tool("retention", "--pipeline", str(file))
    assert found.returncode == 1
    assert "1 unread, the first may go in 1 h 59 min" in found.stdout
    folder = PipelineFolder(load(file, {}), tmp_path)
    Path(folder.state).mkdir(parents=True)
    folder.write_status({"pipeline": "numbers", "running": False, "started_ms": 0, "updated_ms": 0, "queries": {}})
    said = tool("pipeline", "status", str(file)).stdout
    assert f"warning: {short_lived}-0: 1 unread, the first may go in 1 h 59 min" in said
    assert f"retention can be held: moldau retention --pipeline {file} --hold" in said


def test_a_project_warns_by_what_its_newest_run_read(
    tool: Tool, bootstrap: str, short_lived: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark", reason="scripts/test-broker installs nothing of Spark")
    pytest.importorskip("yaml", reason="the extra `pipelines` is not installed")
    from moldau.spark.pipelines.declarative.elements import DataSource
    from moldau.spark.pipelines.declarative.lag import topics_of
    from moldau.spark.pipelines.declarative.runner import RunningFlow
    from moldau.spark.pipelines.plan import ONCE, Plan
    from moldau.spark.pipelines.running.reports.rejected import RejectedRecords
    from moldau.spark.pipelines.running.state.folders import PipelineFolder

    (tmp_path / "spark-pipeline.yml").write_text("name: shop\n")
    assert "has not run yet" in tool("retention", "--pipeline", str(tmp_path)).stderr
    Topics(bootstrap).commit(f"{short_lived}-shop", short_lived, 1)
    folder = PipelineFolder(Plan("shop"), tmp_path)
    Path(folder.state).mkdir(parents=True)

    def status(**more: str) -> str:
        options = {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": short_lived,
            "kafka.group.id": f"{short_lived}-shop",
        }
        reads = topics_of("orders", [DataSource("moldau", {**options, **more}, is_streaming=True)])
        flow = RunningFlow("orders", "orders", ONCE, reads, RejectedRecords(frozenset()))
        told = {"pipeline": "shop", "running": False, "started_ms": 0, "updated_ms": 0}
        folder.write_status({**told, "queries": {"orders": flow.as_json()}}, at_once=True)
        assert "hidden" not in (Path(folder.state) / "status.json").read_text()
        return tool("pipeline", "status", str(tmp_path)).stdout

    assert f"warning: {short_lived}-0: 1 unread, the first may go in 1 h 59 min" in status()
    held = tool("retention", "--pipeline", str(tmp_path), "--hold")
    assert f"{short_lived}: retention.ms is " in held.stderr
    secured = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
    said = status(**secured, **{"kafka.sasl.username": "ann", "kafka.sasl.password": "hidden"})
    assert f"retention before group {short_lived}-shop is shown by: moldau retention --pipeline" in said
    assert "-X sasl.password=…" in said
