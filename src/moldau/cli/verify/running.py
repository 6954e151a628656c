"""One scenario after the other on one cluster, each cleaned up whatever happened to it."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from moldau.cli.verify.catalogue import Scenario
from moldau.cli.verify.clusters.target import Target
from moldau.cli.verify.outcome import Outcome, Skipped, Wrong
from moldau.cli.verify.progress import Progress
from moldau.cli.verify.trial import Trial, Wishes
from moldau.client.cluster import NoAnswer, Refused
from moldau.client.connection import Unsupported
from moldau.embedded.process import BrokerFailed

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_all(
    scenarios: Sequence[Scenario], target: Target, wishes: Wishes, progress: Progress, *, prefix: str
) -> list[Outcome]:
    outcomes = []
    for number, scenario in enumerate(scenarios, 1):
        progress.scenario(scenario.name, number, len(scenarios))
        outcome = Outcome(scenario.name)
        trial = Trial(target, wishes, outcome, progress, f"{prefix}-{scenario.name}")
        begun_s = time.monotonic()
        goes_on = False
        try:
            _perform(scenario, trial)
            goes_on = True
        finally:
            with _uninterrupted():
                progress.load = None
                if not goes_on:
                    progress.step("interrupted; cleaning up")
                trial.close(goes_on=goes_on)
            for complaint in outcome.complaints:
                progress.step(complaint)
        outcome.seconds = time.monotonic() - begun_s
        outcomes.append(outcome)
        why = f", {outcome.skipped}" if outcome.skipped is not None else f" in {outcome.seconds:.1f} s"
        progress.step(f"{outcome.verdict}{why}")
    return outcomes


def _perform(scenario: Scenario, trial: Trial) -> None:
    trial.progress.load = trial.load
    trial.progress.step("begins")
    try:
        scenario.perform(trial)
    except Skipped as why:
        trial.outcome.skipped = str(why)
    except (Wrong, NoAnswer, Refused, Unsupported, BrokerFailed) as wrong:
        trial.outcome.complaints.append(str(wrong))


@contextmanager
def ends_by_signals() -> Iterator[None]:
    """SIGTERM, and the end of a terminal, clean up as Ctrl-C does."""
    before = {number: signal.signal(number, _interrupt) for number in ENDINGS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _go_on(_number: int, _frame: FrameType | None) -> None:
    """SIG_IGN would be for the commands that bring brokers back, too, and for a broker that one of them starts."""


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """What is being cleaned up takes some seconds; nobody's second Ctrl-C is to leave half of it."""
    before = {number: signal.signal(number, _go_on) for number in ENDINGS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
