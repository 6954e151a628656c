"""`scripts/fault-matrix`: all cases of the matrix, or a part of them, and the figures."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from confluent_kafka import KafkaException

from tests.faults.matrix import Case, Life, Matrix


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="1/1", help="such as 2/6: the second sixth of all cases")
    parser.add_argument("--only", default="", help="cases whose description holds this text")
    parser.add_argument("--jobs", type=int, default=1, help="how many brokers live at once")
    parser.add_argument("--list", action="store_true", help="say what would be run")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    with tempfile.TemporaryDirectory(prefix="moldau-faults-") as scratch:
        matrix = Matrix(Path(scratch))
        chosen = [case for case in matrix.cases if options.only in str(case)][part - 1 :: parts]
        if options.list:
            print("\n".join(map(str, chosen)))
            return 0
        return run(matrix, chosen, options.jobs)


def run(matrix: Matrix, chosen: list[Case], jobs: int) -> int:
    started_s = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda each: one(matrix, *each), enumerate(chosen)))
    lives = [result for result in results if result is not None]
    struck, ended = sum(life.struck for life in lives), sum(bool(life.endings) for life in lives)
    print(
        f"{len(chosen)} cases in {time.monotonic() - started_s:.0f} s: {struck} met their fault, the broker ended "
        f"itself in {ended} of them and was started again; {len(chosen) - len(lives)} failed"
    )
    return 0 if len(lives) == len(chosen) else 1


def one(matrix: Matrix, number: int, case: Case) -> Life | None:
    try:
        life = matrix.outcome(f"case-{number}", case)
    except (AssertionError, KafkaException, OSError, ValueError, subprocess.TimeoutExpired) as wrong:
        print(f"FAILED  {case}\n        {type(wrong).__name__}: {wrong}", flush=True)
        return None
    what = "; ".join(life.endings) or ("went on" if life.struck else "was not met")
    print(f"ok      {case}: {what.replace(str(matrix.folder), '...')}", flush=True)
    return life


if __name__ == "__main__":
    sys.exit(main())
