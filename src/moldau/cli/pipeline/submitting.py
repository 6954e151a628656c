"""`moldau pipeline run --deploy-mode cluster`: the driver runs in the cluster too, and this command only submits it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from moldau.cli.failures import CommandFailed, UsageError
from moldau.cli.pipeline.command import CLUSTER
from moldau.cli.pipeline.handover import SETTING, HandedOver, as_properties
from moldau.spark.pipelines.loading import files_of, load, variables_of
from moldau.spark.pipelines.plan import Plan
from moldau.spark.pipelines.running.sessions.opening import SUBMITTED
from moldau.spark.pipelines.running.state.folders import STATE
from moldau.spark.storage import is_url

ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # what was started with nohup goes on to ignore the last
HEARD_S_MAX = 1.0
PROGRAM = Path(__file__).with_name("submitted.py")
KUBERNETES = "k8s://"
UPLOADS = "spark.kubernetes.file.upload.path"
# YARN starts a driver that died again, a few times in all: what was long ago must not count against one of months.
FAILURES_COUNT_FOR = "spark.yarn.am.attemptFailuresValidityInterval"
LOG_LEVEL = "spark.log.level"  # as of a driver here: below it Spark tells plans and properties to whoever reads logs
# YARN has brought these to the driver, which would look for them where they were here.
BROUGHT = ("spark.archives", "spark.files", "spark.jars", "spark.submit.pyFiles")
# Masters that start drivers in Python; Spark's own master refuses them.
TAKERS = ("yarn", KUBERNETES)


def is_submitted() -> bool:
    """Whether spark-submit started this process, as the driver."""
    return SUBMITTED in os.environ


def submit(plan: Plan, options: Namespace, settings: Mapping[str, str]) -> int:
    """spark-submit's own exit code and output; `settings` are what the command line and the environment said."""
    refuse(plan, master_of(plan, options))
    from pyspark.find_spark_home import _find_spark_home

    home: str = _find_spark_home()
    # Nobody else may open the folder.
    with _ending() as ending, tempfile.TemporaryDirectory(prefix="moldau-") as folder:
        properties = Path(folder) / "spark.properties"
        properties.write_text(as_properties(spark_settings(plan, options, settings)))
        properties.chmod(0o600)
        command = [str(Path(home, "bin", "spark-submit")), *arguments(plan, options, properties)]
        return ending.run(command, {**os.environ, "SPARK_HOME": home})


class _Ending:
    """Who ends this command, by a signal or with its terminal, ends spark-submit, and the file with settings goes."""

    def __init__(self) -> None:
        self._asked: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def hear(self, number: int, _frame: object) -> None:
        self._asked = number
        if self._process is not None:
            self._process.terminate()

    def run(self, command: list[str], environment: Mapping[str, str]) -> int:
        self._process = subprocess.Popen(command, env=environment)
        if self._asked is not None:
            self._process.terminate()
        code = None
        while code is None:
            # Python hears a signal between two steps: one that comes just before it waits would be heard after that.
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(HEARD_S_MAX)
        return code if self._asked is None else 128 + self._asked


@contextmanager
def _ending() -> Iterator[_Ending]:
    heard = _Ending()
    endings = [each for each in ENDINGS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, heard.hear) for each in endings}
    try:
        yield heard
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def master_of(plan: Plan, options: Namespace) -> str:
    return str(options.master or plan.settings.get("spark.master", ""))


def refuse(plan: Plan, master: str) -> None:
    if not master.startswith(TAKERS):
        raise UsageError(
            f"--deploy-mode cluster: {master or 'no master'} starts no drivers in Python, only yarn and k8s://… do; "
            "run it without, on a machine that stays"
        )
    for name in ("checkpoint", "state") if "state" in plan.settings else ("checkpoint",):
        place = plan.settings.get(name, "")
        if not is_url(place) or place.startswith("file:"):
            raise CommandFailed(
                f"pipeline {plan.name}: with --deploy-mode cluster the driver's disk goes with it, so {name} must be a "
                f"URL that stays, as in --set {name}=s3a://bucket/{plan.name}"
            )


def spark_settings(plan: Plan, options: Namespace, settings: Mapping[str, str]) -> dict[str, str]:
    """All that is said to Spark, and what is handed to the driver in private: a command line is read by anyone."""
    master = master_of(plan, options)
    said = {key: value for key, value in plan.settings.items() if key.startswith("spark.") and key != "spark.master"}
    if master.startswith(KUBERNETES):
        # Files of this machine reach a pod through a store; the checkpoint's is one that both reach.
        said.setdefault(UPLOADS, f"{plan.settings['checkpoint'].rstrip('/')}/{STATE}/uploads")
    else:
        settings = {**settings, **{key: "" for key in BROUGHT if key in said}}
        if not options.once:
            said.setdefault(FAILURES_COUNT_FOR, "1h")
    said.setdefault(LOG_LEVEL, "WARN")
    names = variables_of(load(options.file, settings))
    environment = {name: os.environ[name] for name in names if name in os.environ}
    return {**said, SETTING: HandedOver(settings, environment, places_of(options.file)).text()}


def places_of(file: Path) -> dict[str, str]:
    """Spark lays files side by side, whatever folders they come from."""
    included = [path.relative_to(file.parent) for path in files_of(file)[1:] if path.is_relative_to(file.parent)]
    names = [path.name for path in included]
    if len(included) < len(files_of(file)) - 1 or any(".." in path.parts for path in included):
        raise CommandFailed(f"{file}: with --deploy-mode cluster only files beside it or below can be included")
    if len({file.name, *names}) <= len(names):
        raise CommandFailed(f"{file}: with --deploy-mode cluster included files need names of their own, not {names}")
    return {file.name: file.name, **{str(path): path.name for path in included}}


def arguments(plan: Plan, options: Namespace, properties: Path) -> list[str]:
    """The program, and the pipeline's files in its working folder, where the driver finds them by their names."""
    given = ["--master", master_of(plan, options), "--deploy-mode", CLUSTER, "--name", f"moldau pipeline {plan.name}"]
    given += ["--properties-file", str(properties), "--load-spark-defaults"]
    given += ["--files", ",".join(str(path.resolve()) for path in files_of(options.file)), str(PROGRAM)]
    given += ["run", options.file.name, *(["--once"] if options.once else []), "--quiet"]
    given += [] if options.restarts is None else ["--restarts", str(options.restarts)]
    given += ["--lineage", options.lineage] if options.lineage else []
    if options.metrics_port is not None:
        given += ["--metrics-port", str(options.metrics_port), "--metrics-host", options.metrics_host]
    return given
