"""`moldau pipeline run --deploy-mode cluster`: the driver runs in the cluster too, and this command only submits it."""

from __future__ import annotations

import os
import subprocess
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from moldau.cli.failures import CommandFailed, UsageError
from moldau.spark.pipelines.loading import files_of
from moldau.spark.pipelines.plan import Plan
from moldau.spark.pipelines.running.state.folders import STATE
from moldau.spark.storage import is_url

CLIENT = "client"
CLUSTER = "cluster"
PROGRAM = Path(__file__).with_name("submitted.py")
KUBERNETES = "k8s://"
UPLOADS = "spark.kubernetes.file.upload.path"
# Masters that start drivers in Python; Spark's own master refuses them.
TAKERS = ("yarn", KUBERNETES)


def submit(plan: Plan, options: Namespace, settings: Mapping[str, str]) -> int:
    """spark-submit's own exit code and output; `settings` are what the command line and the environment said."""
    refuse(plan, master_of(plan, options))
    from pyspark.find_spark_home import _find_spark_home

    home: str = _find_spark_home()
    command = [str(Path(home, "bin", "spark-submit")), *arguments(plan, options, settings)]
    return subprocess.run(command, env={**os.environ, "SPARK_HOME": home}, check=False).returncode


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


def arguments(plan: Plan, options: Namespace, settings: Mapping[str, str]) -> list[str]:
    """The program, and the pipeline's files in its working folder, where the driver finds them by their names."""
    master = master_of(plan, options)
    said = {key: value for key, value in plan.settings.items() if key.startswith("spark.") and key != "spark.master"}
    if master.startswith(KUBERNETES):
        # Files of this machine reach a pod through a store; the checkpoint's is one that both reach.
        said.setdefault(UPLOADS, f"{plan.settings['checkpoint'].rstrip('/')}/{STATE}/uploads")
    given = ["--master", master, "--deploy-mode", CLUSTER, "--name", f"moldau pipeline {plan.name}"]
    for key, value in said.items():
        given += ["--conf", f"{key}={value}"]
    given += ["--files", ",".join(str(path.resolve()) for path in files_of(options.file)), str(PROGRAM)]
    given += ["run", options.file.name, *(["--once"] if options.once else []), "--quiet"]
    given += [] if options.restarts is None else ["--restarts", str(options.restarts)]
    given += ["--lineage", options.lineage] if options.lineage else []
    if options.metrics_port is not None:
        given += ["--metrics-port", str(options.metrics_port), "--metrics-host", options.metrics_host]
    for key, value in settings.items():
        given += ["--set", f"{key}={value}"]
    return given
