"""Rules by which Prometheus tells of trouble, each a measure that always has a value, and its bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CRITICAL, WARNING = "critical", "warning"
FREE = "moldau_log_directory_free_bytes"


@dataclass(frozen=True, slots=True)
class Alert:
    """`wait` is how long it has to be so before anybody hears of it."""

    name: str
    measure: str
    bound: str
    wait: str
    severity: str
    summary: str
    todo: str

    @property
    def expr(self) -> str:
        return f"{self.measure} {self.bound}"


BROKER_ALERTS = (
    Alert(
        "MoldauBrokerDown",
        "(up and on (job, instance) last_over_time(moldau_broker_info[1d]))", "== 0", "1m", CRITICAL,
        "{{ $labels.instance }} has not answered for a minute",
        "Look at the end of its log, and start it again.",
    ),
    Alert(
        "MoldauNoActiveController",
        "sum by (job) (kafka_controller_kafkacontroller_activecontrollercount)", "!= 1", "1m", CRITICAL,
        "{{ $value }} brokers say that they control the cluster of {{ $labels.job }}",
        "Neither topics nor leaders can be made: are the metadata store and a majority of the brokers there?",
    ),
    Alert(
        "MoldauOfflinePartitions",
        "max by (job) (kafka_controller_kafkacontroller_offlinepartitionscount)", "> 0", "30s", CRITICAL,
        "{{ $value }} partitions of {{ $labels.job }} have no leader",
        "Start the brokers that have their replicas; moldau topics --describe --unavailable-partitions names them.",
    ),
    Alert(
        "MoldauUnderMinIsr",
        "sum by (job) (kafka_server_replicamanager_underminisrpartitioncount)", "> 0", "1m", CRITICAL,
        "{{ $value }} partitions of {{ $labels.job }} take nothing from producers with acks=all",
        "Bring the lost replicas back; moldau topics --describe --under-min-isr-partitions names the partitions.",
    ),
    Alert(
        "MoldauUnderReplicated",
        "sum by (job, instance) (kafka_server_replicamanager_underreplicatedpartitions)", "> 0", "5m", WARNING,
        "{{ $value }} partitions that {{ $labels.instance }} leads lack replicas in sync",
        "Is a broker down, or too slow? moldau topics --describe --under-replicated-partitions names the partitions.",
    ),
    Alert(
        "MoldauLogDirectoryOffline",
        "max by (job, instance, logdirectory) (kafka_log_logmanager_logdirectoryoffline)", "> 0", "0s", CRITICAL,
        "{{ $labels.logdirectory }} of {{ $labels.instance }} failed",
        "Look at the disk. Its replicas are offline until the broker starts with one that works.",
    ),
    Alert(
        "MoldauDiskFull",
        f"min by (job, instance, logdirectory) ({FREE} / moldau_log_directory_total_bytes)",
        "< 0.1", "1m", CRITICAL,
        "{{ $labels.logdirectory }} of {{ $labels.instance }} has {{ $value | humanizePercentage }} left",
        "Shorten retention of the largest topics (moldau topics list), move partitions, or add room.",
    ),
    Alert(
        "MoldauDiskFullSoon",
        f"min by (job, instance, logdirectory) (predict_linear({FREE}[6h], 24 * 3600))", "< 0", "30m", WARNING,
        "{{ $labels.logdirectory }} of {{ $labels.instance }} will be full within a day if it goes on like this",
        "Compare what comes in with retention: moldau doctor, moldau plan.",
    ),
    Alert(
        "MoldauBrokerSaturated",
        "avg by (job, instance) (kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent)",
        "< 0.1", "5m", WARNING,
        "the event loop of {{ $labels.instance }} is idle for {{ $value | humanizePercentage }} of the time",
        "Move leaders to other brokers, or start more of them on this machine.",
    ),
    Alert(
        "MoldauFileDescriptors",
        "max by (job, instance) (process_open_fds / process_max_fds * on (job, instance) group_left ()"
        " max by (job, instance) (moldau_broker_info))",
        "> 0.8", "5m", WARNING,
        "{{ $labels.instance }} uses {{ $value | humanizePercentage }} of its file descriptors",
        "Raise the limit (ulimit -n, LimitNOFILE), or find the client that leaves connections open.",
    ),
)  # fmt: skip
GROUP_ALERTS = (
    Alert(
        "MoldauGroupInTrouble",
        "max by (job, cluster, consumer_group) (burrow_kafka_consumer_status)", ">= 3", "1m", CRITICAL,
        "group {{ $labels.consumer_group }} of {{ $labels.cluster }} stopped, stalled or went back",
        "moldau groups describe shows its members and lag.",
    ),
    Alert(
        "MoldauLagGrows",
        "sum by (job, cluster_name, group) (deriv(kafka_consumergroup_group_sum_lag[15m]))", "> 1", "30m", WARNING,
        "group {{ $labels.group }} of {{ $labels.cluster_name }} falls behind by {{ $value | humanize }}/s",
        "Add members up to the number of partitions, or find what makes them slow.",
    ),
    Alert(
        "MoldauLagSeconds",
        "max by (job, cluster_name, group) (kafka_consumergroup_group_max_lag_seconds)", "> 300", "5m", WARNING,
        "records wait for group {{ $labels.group }} of {{ $labels.cluster_name }} for {{ $value | humanizeDuration }}",
        "The bound is a guess of ours: set it to what your users notice.",
    ),
    Alert(
        "MoldauMonitorBlind",
        "min by (job, cluster) (moldau_monitor_up)", "== 0", "2m", WARNING,
        "the lag monitor can't look at {{ $labels.cluster }}",
        "Its log says why.",
    ),
)  # fmt: skip
RULES = {"moldau-brokers": BROKER_ALERTS, "moldau-groups": GROUP_ALERTS}


def rules_text() -> str:
    """As Prometheus reads it."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Written by `moldau dashboards`. For rule_files of prometheus.yml; bounds are a start, and yours to change."
    yield "groups:"
    for name, alerts in RULES.items():
        yield f"  - name: {name}"
        yield "    rules:"
        for each in alerts:
            yield f"      - alert: {each.name}"
            yield f"        expr: {each.expr}"
            yield f"        for: {each.wait}"
            yield f"        labels: {{severity: {each.severity}}}"
            yield "        annotations:"
            yield f"          summary: {_quoted(each.summary)}"
            yield f"          todo: {_quoted(each.todo)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
