"""Long runs: `python -m tests.simulation cluster --seeds 5000 --processes 2`, or one seed again with `--seed 17`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context

from tests.simulation.outcomes import WORLDS, Outcome

REPORT_EVERY = 250
TASKS_OF_A_PROCESS = 20  # brokers that are killed leave their files open
SEEDS_AT_ONCE = 10  # that a process takes: as many as make its start, and the way of their outcomes, small


def _outcomes(simulate: Callable[[int], Outcome], seeds: Sequence[int], processes: int) -> Iterator[Outcome]:
    if len(seeds) == 1:
        yield from map(simulate, seeds)
        return
    with get_context("spawn").Pool(processes, maxtasksperchild=TASKS_OF_A_PROCESS) as pool:
        yield from pool.imap(simulate, seeds, chunksize=SEEDS_AT_ONCE)


def main() -> int:
    parser = argparse.ArgumentParser(prog="simulate", description="Run a simulated broker or cluster from seeds.")
    parser.add_argument("world", nargs="?", choices=[*WORLDS], default="coordinators", help="what is simulated")
    parser.add_argument("--seeds", type=int, default=1_000, metavar="N", help="how many seeds to run")
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="K", help="the first of them")
    parser.add_argument("--seed", type=int, metavar="K", help="run this one alone")
    parser.add_argument("--processes", type=int, default=1, metavar="P", help="how many at the same time")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds) if given.seed is None else range(given.seed, given.seed + 1)
    failed: list[int] = []
    totals: dict[str, int] = {}
    began_s = time.monotonic()
    for done, outcome in enumerate(_outcomes(WORLDS[given.world], seeds, given.processes), 1):
        if outcome.wrong is not None:
            failed.append(outcome.seed)
            print(outcome.wrong, flush=True)
        for name, count in outcome.figures.items():
            totals[name] = totals.get(name, 0) + count
        if done % REPORT_EVERY == 0 or done == len(seeds):
            told = ", ".join([f"{done} seeds", *(f"{count} {name}" for name, count in totals.items())])
            numbers = f": {', '.join(map(str, failed))}" if failed else ""
            print(f"{told} in {time.monotonic() - began_s:.0f} s; {len(failed)} failed{numbers}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
