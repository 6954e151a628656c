"""What `moldau monitor` tells of consumer groups: the dashboard of groups and their lag."""

from __future__ import annotations

from moldau.cli.dashboards.grafana import Dashboard, Panel, Query, Variable, graph, stat

RATE = "[$__rate_interval]"
LAG = "kafka_consumergroup_group_"
MINE = 'job=~"$job",cluster_name=~"$cluster"'
OF_GROUP = f'{MINE},group=~"$group"'
BURROW = 'job=~"$job",cluster=~"$cluster",consumer_group=~"$group"'
WATCHED = 'job=~"$job",cluster=~"$cluster"'
STATUSES = {0: "not found", 1: "OK", 2: "WARN", 3: "ERR", 4: "STOP", 5: "STALL", 6: "REWIND"}

GROUPS = Dashboard(
    uid="moldau-groups",
    title="Moldau: groups and lag",
    about="Lag of consumer groups in records and seconds, and Burrow's verdicts, from the /metrics of `moldau monitor`"
    " with the families burrow and kafka_lag_exporter, which are there by default.",
    matchers=OF_GROUP,
    variables=(
        Variable("job", "moldau_monitor_up", "job"),
        Variable("cluster", 'moldau_monitor_up{job=~"$job"}', "cluster"),
        Variable("group", f"{LAG}sum_lag{{{MINE}}}", "group"),
    ),
    rows={
        "Now": (
            stat("Clusters that answer", f"sum(moldau_monitor_up{{{WATCHED}}})", bad_below=1),
            stat("Groups", f"sum(moldau_monitor_groups{{{WATCHED}}})"),
            stat("Groups in ERR", f"sum(burrow_kafka_consumer_status{{{BURROW}}} == bool 3)", bad_from=1),
            stat("Groups in WARN", f"sum(burrow_kafka_consumer_status{{{BURROW}}} == bool 2)", bad_from=1),
            stat("Unread records", f"sum({LAG}sum_lag{{@}})"),
            stat("Longest wait", f"max({LAG}max_lag_seconds{{@}})", unit="s"),
        ),
        "Groups": (
            graph("Lag", (f"sum by (group) ({LAG}sum_lag{{@}})", "{{group}}"), about="Unread records."),
            graph("Lag in seconds", (f"max by (group) ({LAG}max_lag_seconds{{@}})", "{{group}}"), unit="s",
                  about="How long the first unread record has been waiting, by its own timestamp."),
            graph("Records read", (f"sum by (group) (rate({LAG}offset{{@}}{RATE}))", "{{group}}"), unit="cps"),
            graph("Growth of the lag", (f"sum by (group) (deriv({LAG}sum_lag{{@}}[5m]))", "{{group}}"), unit="cps",
                  about="Above 0 a group falls behind."),
            Panel("Status", [Query(f"max by (cluster, consumer_group) (burrow_kafka_consumer_status{{{BURROW}}})")],
                  kind="table", names=STATUSES),
        ),
        "Partitions": (
            graph("Lag", (f"topk(20, sum by (group, topic, partition) ({LAG}lag{{@}}))",
                          "{{group}} {{topic}}-{{partition}}"), about="The 20 partitions with most."),
            graph("Lag in seconds", (f"topk(20, max by (group, topic, partition) ({LAG}lag_seconds{{@}}))",
                                     "{{group}} {{topic}}-{{partition}}"), unit="s", about="The 20 that wait longest."),
            graph("Lag by topic", (f"sum by (group, topic) ({LAG}topic_sum_lag{{@}})", "{{group}} {{topic}}")),
            graph("Partitions of each member", (f'count by (group, client_id) ({LAG}lag{{@,consumer_id!=""}})',
                                                "{{group}} {{client_id}}")),
            Panel("Partitions in trouble", [Query(
                      "max by (cluster, consumer_group, topic, partition)"
                      f" (burrow_kafka_topic_partition_status{{{BURROW}}}) > 1")],
                  kind="table", names=STATUSES),
        ),
        "The monitor": (
            graph("Time of a look", (f"max by (cluster) (moldau_monitor_look_seconds{{{WATCHED}}})", "{{cluster}}"),
                  unit="s"),
            graph("Age of the last look",
                  (f"time() - min by (cluster) (moldau_monitor_last_look_timestamp_seconds{{{WATCHED}}})",
                   "{{cluster}}"), unit="s"),
            graph("Parts of looks that were refused",
                  (f"sum by (cluster) (moldau_monitor_problems{{{WATCHED}}})", "{{cluster}}")),
            graph("Records in", (f"sum by (topic) (rate(kafka_partition_latest_offset{{{MINE}}}{RATE}))", "{{topic}}"),
                  unit="cps"),
        ),
    },
)  # fmt: skip
