"""`moldau pipeline` with a project of Spark's own Declarative Pipelines, as a user runs it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from moldau.spark.pipelines.declarative.places import hold_folder
from moldau.spark.pipelines.declarative.project import load_project
from moldau.spark.storage import LocalFolder
from tests.brokers import PROJECT
from tests.cli.conftest import Tool
from tests.cli.pipeline.test_command import WAIT_S_MAX, running, wait_for
from tests.spark.object_store import PACKAGES_SETTINGS, running_object_store
from tests.spark.topics import Topics

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
@pytest.mark.timeout(2400)
def test_the_life_of_a_project(
    bootstrap: str, tool: Tool, done: Callable[..., str], project: Path, topic: str, tmp_path: Path
) -> None:
    def row(name: str = "orders") -> dict[str, object]:
        told = tool("pipeline", "status", str(project), "-o", "json")
        rows = json.loads(told.stdout) if told.returncode == 0 else []
        return next((dict(one) for one in rows if one["query"] == name), {})

    def large() -> list[str]:
        return done(
            "consume", f"{topic}-large", "--from-beginning", "-e", "-X", "isolation.level=read_committed"
        ).splitlines()

    done("topics", "create", f"{topic}-large")
    done("produce", topic, stdin=order(1, 120) + order(2, 7))
    topics = Topics(bootstrap)
    topics.produce(topic, [b"no order \xff"], key=b"\x00k", headers=[("trace", b"\xfe"), ("empty", None)])
    said, view = tmp_path / "run.err", project / "transformations" / "customers.sql"
    with running(bootstrap, "run", str(project), "--every", "1s", *MASTER, error=said) as process:
        wait_for(lambda: (row().get("rows"), row().get("rejected")) == (3, {topic: 1}), "three records")
        assert (row()["state"], row()["lag"]) == ("running", 0)
        assert row("send_large_orders")["into"] == f"topic {topic}-large"
        # The storage is what both have in common, as two machines would.
        copy = shutil.copytree(project, tmp_path / "copy", ignore=shutil.ignore_patterns(".moldau", "spark-warehouse"))
        for again in (project, copy):
            second = tool("pipeline", "run", str(again))
            assert (second.returncode, second.stderr) == (
                1,
                f"moldau pipeline: process {process.pid} on {socket.gethostname()} runs this pipeline already; "
                f"stop it with: moldau pipeline stop {again}/spark-pipeline.yml\n",
            )
        assert "running" in tool("pipeline", "status", str(copy)).stdout
        (letter,) = topics.rows(f"{topic}.dead-letters")
        assert (letter.key, letter.value) == (b"\x00k", b"no order \xff")
        assert letter.headers[:2] == (("trace", b"\xfe"), ("empty", None))
        assert ("moldau.dead-letter.topic", topic.encode()) in letter.headers
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
        assert done("pipeline", "stop", str(copy)) == "pipeline shop stopped\n"
        assert process.wait(WAIT_S_MAX) == 0
    assert (
        "shop: the update failed and is tried again in 1 s: transformations/customers.sql: [PARSE" in said.read_text()
    )
    assert "Traceback" not in said.read_text()
    assert row()["state"] == "stopped"
    # What Spark knows of its tables outlives it.
    done("produce", topic, stdin=order(4, 300))
    with running(bootstrap, "run", str(project), "--once", *MASTER, error=said) as process:
        assert process.wait(WAIT_S_MAX) == 0, said.read_text()
    assert [json.loads(each)["id"] for each in large()] == ["o-1", "o-3", "o-4"]
    assert customers(project) == [("ada", 4, 627.0)]
    assert (row()["state"], row()["rows"], row()["lag"]) == ("done", 1, 0)


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(2400)
def test_a_spark_that_dies_ends_it(bootstrap: str, tool: Tool, project: Path, tmp_path: Path) -> None:
    said = tmp_path / "run.err"
    with running(bootstrap, "run", str(project), "--every", "1s", *MASTER, error=said) as process:
        wait_for(lambda: "orders" in tool("pipeline", "status", str(project)).stdout, "an update")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        (jvm,) = [int(each) for each in children if "java" in Path(f"/proc/{each}/cmdline").read_text()]
        os.kill(jvm, signal.SIGKILL)
        assert process.wait(WAIT_S_MAX) == 1
    assert "shop: Spark is gone" in said.read_text()
    assert "Traceback" not in said.read_text()
    assert "failed" in tool("pipeline", "status", str(project)).stdout


def rows_of(project: Path) -> int | None:
    """As the status has it; to look at the file costs less than to run the command each time."""
    try:
        told = json.loads((project.parent / "storage" / "_moldau" / "shop" / "status.json").read_text())
    except (OSError, ValueError):
        return None
    rows: int | None = told["queries"].get("orders", {}).get("rows")
    return rows


def alter(project: Path, old: str, new: str) -> None:
    path = project / "transformations" / "orders.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


UDF = """\
from pyspark.sql.functions import udf


@udf("string")
def checked(name):
    return {"ada": "Ada"}[name]

"""


def use_a_function(project: Path) -> None:
    """One that knows a single customer."""
    alter(project, "spark = SparkSession.active()", f"{UDF}\nspark = SparkSession.active()")
    alter(project, 'select("value.*")', 'select("value.*").withColumn("customer", checked("customer"))')


def keep_letters_from_being_written(project: Path) -> None:
    alter(project, '"deadletter"', '"fail"')


def leave_it(project: Path) -> None:
    assert project.is_dir()


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(2400)
@pytest.mark.parametrize(
    ("prepare", "arguments", "stdin", "reason"),
    [
        (use_a_function, ("produce", "{topic}"), order(2, 7).replace("ada", "bob"), "KeyError: 'bob'"),
        (keep_letters_from_being_written, ("produce", "{topic}"), "no order\n", "not JSON"),
        (leave_it, ("topics", "delete", "{topic}", "--yes"), "", "Data was lost, up to"),
    ],
)
def test_what_fails_for_good_ends_it(
    bootstrap: str, tool: Tool, done: Callable[..., str], project: Path, topic: str, tmp_path: Path,
    prepare: Callable[[Path], None], arguments: tuple[str, ...], stdin: str, reason: str,
) -> None:  # fmt: skip
    """It worked, nobody has touched its files, and the next update would fail as this one did."""
    prepare(project)
    done("topics", "create", f"{topic}-large")
    done("produce", topic, stdin=order(1, 120))
    said = tmp_path / "run.err"
    with running(bootstrap, "run", str(project), "--every", "1s", *MASTER, error=said) as process:
        wait_for(lambda: rows_of(project) == 1, "an update")
        assert tool(*(each.format(topic=topic) for each in arguments), stdin=stdin).returncode == 0
        assert process.wait(WAIT_S_MAX) == 1
    told = [line for line in said.read_text().splitlines() if reason in line]
    assert [line.startswith("shop: the update failed: spark_catalog.default.orders: ") for line in told] == [True]
    assert "Traceback" not in said.read_text()
    assert f"orders: {told[0].partition('orders: ')[2]}" in tool("pipeline", "status", str(project)).stdout


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(2400)
def test_what_may_pass_is_tried_again(
    bootstrap: str, done: Callable[..., str], project: Path, topic: str, tmp_path: Path
) -> None:
    alter(project, f'"{topic}")', f'"{topic}-later")')
    done("topics", "create", f"{topic}-large")
    once = tmp_path / "once.err"
    with running(bootstrap, "run", str(project), "--once", *MASTER, error=once) as process:
        assert process.wait(WAIT_S_MAX) == 1
    assert f"there is no {topic}-later at {bootstrap}" in once.read_text()
    said = tmp_path / "run.err"
    with running(bootstrap, "run", str(project), "--every", "1s", *MASTER, error=said) as process:
        wait_for(lambda: "the update failed and is tried again in 1 s" in said.read_text(), "a failed update")
        done("topics", "create", f"{topic}-later")
        done("produce", f"{topic}-later", stdin=order(1, 120))
        wait_for(lambda: rows_of(project) == 1, "an update")
        done("pipeline", "stop", str(project))
        assert process.wait(WAIT_S_MAX) == 0
    assert "Traceback" not in said.read_text()


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(2400)
def test_tables_are_computed_anew(
    bootstrap: str, done: Callable[..., str], project: Path, topic: str, tmp_path: Path
) -> None:
    said = tmp_path / "run.err"

    def update(*arguments: str) -> int:
        with running(bootstrap, "run", str(project), "--once", *arguments, *MASTER, error=said) as process:
            return process.wait(WAIT_S_MAX)

    def large() -> list[str]:
        told = done(
            "consume", f"{topic}-large", "--from-beginning", "-e", "-X", "isolation.level=read_committed"
        ).splitlines()
        return [json.loads(each)["id"] for each in told]

    done("topics", "create", f"{topic}-large")
    done("produce", topic, stdin=order(1, 120))
    assert update() == 0, said.read_text()
    done("produce", topic, stdin=order(2, 7))
    # What it makes of an order has changed, and the table shall have it for all of them.
    alter(project, 'select("value.*")', 'select("value.*").withColumn("amount", col("amount") * 2)')
    alter(project, "from pyspark.sql import", "from pyspark.sql.functions import col\nfrom pyspark.sql import")
    assert update("--full-refresh", "orders") == 0, said.read_text()
    assert customers(project) == [("ada", 2, 254.0)]
    assert (rows_of(project), large()) == (2, ["o-1", "o-1"])
    assert update("--full-refresh", "all") == 0, said.read_text()
    assert customers(project) == [("ada", 2, 254.0)]
    assert (rows_of(project), large()) == (2, ["o-1", "o-1", "o-1"])
    assert update("--full-refresh", "large_orders") == 1
    assert "shop: --full-refresh large_orders: allowed is one of customers, orders, all\n" in said.read_text()
    assert "Traceback" not in said.read_text()


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(2400)
def test_a_storage_at_a_url_has_the_status(
    bootstrap: str, done: Callable[..., str], project: Path, topic: str, tmp_path: Path
) -> None:
    done("topics", "create", f"{topic}-large")
    done("produce", topic, stdin=order(1, 120))
    spec, said = project / "spark-pipeline.yml", tmp_path / "run.err"
    with running_object_store() as store:
        store.create_bucket("lake")
        settings = {**PACKAGES_SETTINGS, **store.spark_settings}
        lines = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in settings.items())
        spec.write_text(spec.read_text().replace(f"file://{tmp_path}/storage", "s3a://lake/shop") + lines)
        with running(bootstrap, "run", str(project), "--once", *MASTER, error=said) as process:
            assert process.wait(WAIT_S_MAX) == 0, said.read_text()
        names = store.names("lake", "shop/_moldau/")
        assert names == ["shop/_moldau/shop/status.json"]
        # Another machine has the project and the store, and nothing else.
        copy = shutil.copytree(project, tmp_path / "copy", ignore=shutil.ignore_patterns(".moldau", "spark-warehouse"))
        with running(bootstrap, "status", str(copy), "-o", "json", error=said) as process:
            assert process.wait(WAIT_S_MAX) == 0, said.read_text()
        assert '"done"' in said.read_text()
    assert not list(project.glob(".moldau/pipelines/shop/lock-*"))


def session_of(process: subprocess.Popen[bytes]) -> list[str]:
    """What runs of all that it started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == process.pid and fields[0] != "Z":
                found.append((stat.parent / "cmdline").read_text().replace("\0", " ")[:80])
    return found


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(2400)
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -9)])
def test_nothing_is_left_of_it(
    bootstrap: str, tool: Tool, done: Callable[..., str], project: Path, topic: str, tmp_path: Path,
    sent: signal.Signals, code: int,
) -> None:  # fmt: skip
    done("topics", "create", f"{topic}-large")
    done("produce", topic, stdin=order(1, 120))
    said = tmp_path / "run.err"
    with running(bootstrap, "run", str(project), "--every", "1s", *MASTER, error=said) as process:
        wait_for(lambda: rows_of(project) == 1, "an update")
        assert len(session_of(process)) > 2
        process.send_signal(sent)
        assert process.wait(WAIT_S_MAX) == code, said.read_text()
        wait_for(lambda: not session_of(process), "its processes to end")
    state = "not running" if sent is signal.SIGKILL else "stopped"
    assert state in tool("pipeline", "status", str(project)).stdout
    assert "Traceback" not in said.read_text()
    stopped = tool("pipeline", "stop", str(project))
    assert (stopped.returncode, stopped.stderr) == (1, "moldau pipeline: pipeline shop is not running\n")


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(2400)
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
        assert process.wait(WAIT_S_MAX) == code, said.read_text()
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
        (("run", str(project), "--metrics-port", "0"), 2, "--metrics-port is for pipelines in a .sql or .py file"),
        (("run", str(project), "--lineage", "events"), 2, "--lineage is for pipelines in a .sql or .py file"),
        (("run", str(project), "--every", "1s", "--once"), 2, "--once and --every exclude each other"),
    ):
        refused = tool("pipeline", *arguments)
        assert refused.returncode == code
        assert reason in refused.stderr
        assert "Traceback" not in refused.stderr


def test_a_copy_with_the_same_storage_is_refused(tool: Tool, project: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(project, tmp_path / "copy")
    with hold_folder(load_project(project), None, reach=lambda url: LocalFolder(Path(url)), say=print) as folder:
        folder.write_status({"updated_ms": 1, "queries": {}})
        second = tool("pipeline", "run", str(copy), "--once")
        assert (second.returncode, second.stderr) == (
            1,
            f"moldau pipeline: process {os.getpid()} on {socket.gethostname()} runs this pipeline already; "
            f"stop it with: moldau pipeline stop {copy}/spark-pipeline.yml\n",
        )
        assert tool("pipeline", "status", str(copy)).returncode == 0
        assert not (copy / ".moldau").exists()
    assert "pipeline shop is not running" in tool("pipeline", "stop", str(copy)).stderr
