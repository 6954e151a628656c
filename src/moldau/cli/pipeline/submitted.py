"""The program that spark-submit starts: `moldau pipeline` with its arguments, on the Spark that it was submitted to."""

from __future__ import annotations

import os
import sys
import warnings

from moldau.cli.main import main
from moldau.cli.pipeline.handover import lay_out, taken_over


def run(arguments: list[str]) -> int:
    # On YARN Spark looks for each jar of `spark.jars.packages` as for a Python file, and tells at length of each.
    warnings.filterwarnings("ignore", "Failed to add file", RuntimeWarning)
    handed = taken_over()
    os.environ.update(handed.environment)
    lay_out(handed)
    settings = [word for key, value in handed.settings.items() for word in ("--set", f"{key}={value}")]
    return main(["pipeline", *arguments, *settings])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
