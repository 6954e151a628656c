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
from moldau.spark.storage import is_url

CLIENT = "client"
CLUSTER = "cluster"
PROGRAM = Path(__file__).with_name("submitted.py")
# Masters that start drivers in Python; Spark's own master refuses them.
TAKERS = ("yarn", "k8s://")


def submit(plan: Plan, options: Namespace, settings: Mapping[str, str]) -> int:
    """spark-submit's own exit code and output; `settings` are what the command line and the environment said."""
    refuse(plan, master_of(plan, options), plan.settings.get("checkpoint", ""))
    from pyspark.find_spark_home import _find_spark_home

    home: str = _find_spark_home()
    command = [str(Path(home, "bin", "spark-submit")), *arguments(plan, options, settings)]
    return subprocess.run(command, env={**os.environ, "SPARK_HOME": home}, check=False).returncode


def master_of(plan: Plan, options: Namespace) -> str:
    return str(options.master or plan.settings.get("spark.master", ""))


def refuse(plan: Plan, master: str, checkpoint: str) -> None:
    if not master.startswith(TAKERS):
        raise UsageError(
            f"--deploy-mode cluster: {master or 'no master'} starts no drivers in Python, only yarn and k8s://… do; "
            "run it without, on a machine that stays"
        )
    if not is_url(checkpoint):
        raise CommandFailed(
            f"pipeline {plan.name}: with --deploy-mode cluster the driver's disk goes with it, so checkpoint must be a "
            f"URL, as in --set checkpoint=s3a://bucket/{plan.name}"
        )


def arguments(plan: Plan, options: Namespace, settings: Mapping[str, str]) -> list[str]:
    """The program, and the pipeline's files in its working folder, where the driver finds them by their names."""
    said = {key: value for key, value in plan.settings.items() if key.startswith("spark.") and key != "spark.master"}
    given = ["--master", master_of(plan, options), "--deploy-mode", CLUSTER, "--name", f"moldau pipeline {plan.name}"]
    for key, value in said.items():
        given += ["--conf", f"{key}={value}"]
    given += ["--files", ",".join(str(path.resolve()) for path in files_of(options.file)), str(PROGRAM)]
    given += ["run", options.file.name, *(["--once"] if options.once else []), "--quiet"]
    given += [] if options.restarts is None else ["--restarts", str(options.restarts)]
    for key, value in settings.items():
        given += ["--set", f"{key}={value}"]
    return given
