"""`scripts/faults-many`: run after run with other seeds, some at a time, and one table of what came of them.

Runs share nothing but the machine: each lives in namespaces of its own. A run that has its result already is not run
again, so that what was interrupted can be gone on with. Of a run that passed only its report is kept.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.faults.cluster.checker import INVARIANTS
from tests.faults.cluster.cluster import PROJECT
from tests.faults.cluster.run import RESULT, Summary

KEPT = (RESULT, "report.txt", "output.txt")
REST_S_MAX = 1_200  # beyond the faults themselves: start, waiting for in-sync replicas, last polls, judgement


@dataclass(frozen=True)
class Wanted:
    store: str
    seed: int
    directory: Path

    @property
    def home(self) -> Path:
        return self.directory / f"{self.store}-{self.seed}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/faults-many", description=__doc__)
    parser.add_argument("--runs", type=int, default=15, help="with each store (default: 15)")
    parser.add_argument("--seconds", type=float, default=300, help="how long faults go on in each (default: 300)")
    parser.add_argument("--store", action="append", choices=("sqlite", "zookeeper"), help="(default: both)")
    parser.add_argument("--first-seed", type=int, default=1, help="of the first run; each has the next (default: 1)")
    parser.add_argument("--at-once", type=int, default=2, help="how many runs at a time (default: 2)")
    parser.add_argument("--directory", type=Path, required=True, help="for reports, and all there is of failed runs")
    options, others = parser.parse_known_args()
    wanted = [
        Wanted(store, options.first_seed + number, options.directory)
        for number in range(options.runs)
        for store in options.store or ("sqlite", "zookeeper")
    ]
    arguments = ["--seconds", str(options.seconds), *others]
    with ThreadPoolExecutor(options.at_once) as pool:
        summaries = list(pool.map(lambda each: one(each, arguments, options.seconds), wanted))
    text = table(wanted, summaries)
    (options.directory / "summary.txt").write_text(text + "\n")
    print(text)
    return 0 if all(summary is not None and summary.has_passed for summary in summaries) else 1


def one(wanted: Wanted, arguments: Sequence[str], seconds: float) -> Summary | None:
    """None where a run came to no judgement."""
    home = wanted.home
    if (home / RESULT).exists():
        return msgspec.json.decode((home / RESULT).read_bytes(), type=Summary)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.faults.cluster", *arguments]
    command += ["--seed", str(wanted.seed), "--store", wanted.store, "--directory", str(home)]
    with (home / "output.txt").open("wb") as output:
        try:
            subprocess.run(
                command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                timeout=seconds + REST_S_MAX, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            output.write(b"the run did not end\n")
    if not (home / RESULT).exists():
        print(f"{time.strftime('%H:%M:%S')} {home.name}: no judgement, see {home / 'output.txt'}", flush=True)
        return None
    summary = msgspec.json.decode((home / RESULT).read_bytes(), type=Summary)
    print(f"{time.strftime('%H:%M:%S')} {home.name}: {'passed' if summary.has_passed else 'FAILED'}", flush=True)
    if summary.has_passed:
        drop_all_but_reports(home)
    return summary


def drop_all_but_reports(home: Path) -> None:
    for path in home.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in KEPT:
            path.unlink()


def table(wanted: Sequence[Wanted], summaries: Sequence[Summary | None]) -> str:
    numbers = list(INVARIANTS)
    lines = ["store      seed  faults  operations  acknowledged  " + " ".join(f"{n:>3}" for n in numbers) + "  passed"]
    total = Summary(has_passed=True, counts=dict.fromkeys(numbers, 0))
    for run, summary in zip(wanted, summaries, strict=True):
        if summary is None:
            lines.append(f"{run.store:9} {run.seed:5}  came to no judgement")
            continue
        lines.append(_row(run.store, str(run.seed), summary, "yes" if summary.has_passed else "NO"))
        total.faults += summary.faults
        total.operations += summary.operations
        total.acknowledged += summary.acknowledged
        total.counts = {number: total.counts[number] + summary.counts.get(number, 0) for number in numbers}
    passed = sum(summary is not None and summary.has_passed for summary in summaries)
    lines.append(_row("all", str(len(wanted)), total, str(passed)))
    for run, summary in zip(wanted, summaries, strict=True):
        lines += [f"{run.home.name}: {text}" for text in (() if summary is None else summary.complaints)]
    return "\n".join(lines)


def _row(store: str, seed: str, summary: Summary, passed: str) -> str:
    counts = " ".join(f"{summary.counts.get(number, 0):3}" for number in INVARIANTS)
    return (
        f"{store:9} {seed:>5} {len(summary.faults):7} {summary.operations:11} {summary.acknowledged:13}  {counts}  "
        f"{passed:>6}"
    )


if __name__ == "__main__":
    sys.exit(main())
