"""A broker that is killed and comes back, as several scenarios have it."""

from __future__ import annotations

from moldau.cli.verify.checking import first_from
from moldau.cli.verify.clients.verifiable import Sender
from moldau.cli.verify.clusters.views import Watch
from moldau.cli.verify.trial import Trial

NEAR_S = 0.01  # an acknowledgement and the view of a new leader come by different ways


def lose(trial: Trial, watch: Watch, victim: int) -> float:
    """Gives when it was lost: the kill of a broker of ours, or its last answer while the user's command ran."""
    killed_s = trial.kill(victim)
    return killed_s if trial.target.is_ours else max(killed_s, watch.answered_s.get(victim, killed_s))


def bring_back(trial: Trial, watch: Watch, victim: int) -> None:
    trial.start(victim)
    trial.outcome.add("in_sync_ms", trial.await_in_sync(watch))


def note_acknowledgement(trial: Trial, sender: Sender, *, lost_s: float, led_s: float) -> None:
    """The first one since there is another leader."""
    since_s = led_s - NEAR_S
    trial.until(lambda: sender.acknowledged[-1].at_s >= since_s, "nothing is acknowledged")
    acknowledged_s = first_from(sender.times_s, since_s)
    assert acknowledged_s is not None, "the last one is that late"
    trial.outcome.add("acknowledged_ms", max(0.0, acknowledged_s - lost_s) * 1_000)
