"""Long runs: `python -m tests.simulation --seeds 5000`, or one seed again with `--seed 17`."""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation.running import simulate
from tests.simulation.world import Violation

REPORT_EVERY = 250


def main() -> int:
    parser = argparse.ArgumentParser(prog="simulate", description="Run the coordinators from seeds, with crashes.")
    parser.add_argument("--seeds", type=int, default=1_000, metavar="N", help="how many seeds to run")
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="K", help="the first of them")
    parser.add_argument("--seed", type=int, metavar="K", help="run this one alone")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds) if given.seed is None else [given.seed]
    failed: list[int] = []
    crashes = transactions = 0
    began_s = time.monotonic()
    for done, seed in enumerate(seeds, 1):
        try:
            world = simulate(seed)
        except Violation as wrong:
            failed.append(seed)
            print(wrong, flush=True)
        else:
            crashes += world.crashes
            transactions += len(world.attempted)
        if done % REPORT_EVERY == 0 or done == len(seeds):
            told = f"{done} seeds, {crashes} crashes, {transactions} transactions in {time.monotonic() - began_s:.0f} s"
            print(f"{told}; {len(failed)} failed{': ' if failed else ''}{', '.join(map(str, failed))}", flush=True)
    return 1 if failed else 0


sys.exit(main())
