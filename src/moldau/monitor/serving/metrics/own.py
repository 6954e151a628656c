"""What the monitor says of itself, and of clusters beyond what others have names for."""

from __future__ import annotations

from moldau.core.exposition import escaped
from moldau.monitor.serving.metrics.book import Book
from moldau.monitor.watching import Watch


def write_own(book: Book, watch: Watch, making_s: float | None) -> None:
    labels = f'{{cluster="{escaped(watch.name)}"}}'

    def tell(name: str, help_text: str, value: float) -> None:
        metric = book.metric(f"moldau_monitor_{name}", help_text)
        metric.add(f"{metric.name}{labels} {value}")

    tell("up", "Whether the last look at the cluster succeeded.", int(watch.failure is None))
    judged = watch.state
    if judged is None:
        return
    look = judged.look
    tell("look_seconds", "How long the last look took.", watch.look_ms / 1_000)
    tell("last_look_timestamp_seconds", "When the cluster was last seen.", look.at_ms / 1_000)
    tell("groups", "Groups that are watched.", len(judged.verdicts))
    reads = "Whether __consumer_offsets can be read; else offsets are polled."
    tell("reads_commits", reads, int(look.reads_commits))
    tell("problems", "What parts of the last look were refused.", len(look.problems))
    if making_s is not None:
        tell("metrics_seconds", "How long it took to write these metrics down.", round(making_s, 6))
    _write_log_dirs(book, watch)


def _write_log_dirs(book: Book, watch: Watch) -> None:
    assert watch.state is not None, "there was a look"
    size = book.metric("moldau_cluster_log_dir_volume_bytes", "The size of the volume that a log directory is on.")
    usable = book.metric("moldau_cluster_log_dir_usable_bytes", "What is free on the volume of a log directory.")
    for each in watch.state.look.stock.log_dirs:
        labels = f'{{cluster="{escaped(watch.name)}",broker="{each.broker}",log_dir="{escaped(each.path)}"}}'
        for metric, value in ((size, each.volume_bytes), (usable, each.usable_bytes)):
            if value is not None:
                metric.add(f"{metric.name}{labels} {value}")


def write_lag_exporter_poll(book: Book, watch: Watch) -> None:
    """By its name, since its dashboards know it so; it changes with looks that fail, too."""
    metric = book.metric("kafka_consumergroup_poll_time_ms", "How long the last look took.")
    metric.add(f'{metric.name}{{cluster_name="{escaped(watch.name)}"}} {watch.look_ms}')
