"""A Kafka Streams application with `exactly_once_v2` counts words exactly while brokers are restarted or killed."""

from __future__ import annotations

import subprocess
from concurrent.futures import Future, ThreadPoolExecutor

from tests.clients.toolchains import streams_application
from tests.faults.words import COUNTS, LINES, Tally
from tests.scenarios.judging import Wrong
from tests.scenarios.trial import PARTITIONS, Trial

ROUNDS = 2
LINES_A_TIME = 100
COUNT_S_MAX = 300.0


def count_words(trial: Trial, *, clean: bool, rounds: int = ROUNDS) -> None:
    trial.create_topic(LINES)
    trial.create_topic(COUNTS, partitions=1)
    tally = Tally(trial.bootstrap, partitions=PARTITIONS)
    with (trial.directory / "application.txt").open("wb") as printed:
        application = subprocess.Popen(
            [*streams_application(), trial.bootstrap, str(trial.directory / "state"), "-1"],
            stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        _say_and_hear(tally)
        with ThreadPoolExecutor(1) as thread:
            rolling = thread.submit(_roll, trial, clean=clean, rounds=rounds)
            _say_while(rolling, tally)
            rolling.result()
        _say_and_hear(tally)
        if application.poll() is not None:
            raise Wrong(f"the application ended with {application.returncode}")
    finally:
        tally.close()
        application.kill()
        application.wait()
    trial.outcome.forbid(tally.out_of_step, "counts were skipped or repeated")
    trial.outcome.figures |= {
        "words": str(sum(tally.said.values())),
        "bounces": str(rounds * len(trial.cluster.brokers)),
    }
    trial.compare_replicas()


def _say_and_hear(tally: Tally) -> None:
    tally.say(LINES_A_TIME)
    try:
        tally.until_told(timeout_s=COUNT_S_MAX)
    except AssertionError as wrong:
        counts = sum(tally.told.values()), sum(tally.said.values())
        raise Wrong(f"{counts[0]} of {counts[1]} words are counted after {COUNT_S_MAX:.0f} s") from wrong


def _roll(trial: Trial, *, clean: bool, rounds: int) -> None:
    for _ in range(rounds):
        for broker in trial.cluster.brokers.values():
            trial.restart(broker, clean=clean)
            trial.await_in_sync()


def _say_while(rolling: Future[None], tally: Tally) -> None:
    while not rolling.done():
        _say_and_hear(tally)
