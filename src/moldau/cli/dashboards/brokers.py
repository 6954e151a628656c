"""What brokers tell of themselves: the dashboards of brokers, of their topics and of their clients."""

from __future__ import annotations

from moldau.cli.dashboards.grafana import Dashboard, Variable, graph, stat

RATE = "[$__rate_interval]"
TRAFFIC = "kafka_server_brokertopicmetrics_"
REPLICAS = "kafka_server_replicamanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"
REQUESTS = "kafka_network_requestmetrics_"
SOCKETS = "kafka_server_socket_server_metrics_"
COORDINATOR = "kafka_coordinator_group_groupmetadatamanager_"

MATCHERS = 'job=~"$job",instance=~"$instance"'
VARIABLES = (
    Variable("job", "moldau_broker_info", "job"),
    Variable("instance", 'moldau_broker_info{job=~"$job"}', "instance"),
)
TOPIC = Variable("topic", f"kafka_log_log_size{{{MATCHERS}}}", "topic")
CLIENT = Variable("client_id", f"moldau_client_requests_total{{{MATCHERS}}}", "client_id")


def slowest(quantile: str, what: str, by: str) -> str:
    return (
        f"histogram_quantile({quantile}, sum by (le, {by}) (rate(moldau_request_duration_seconds_bucket{what}{RATE})))"
    )


BROKER = Dashboard(
    uid="moldau-brokers",
    title="Moldau: brokers",
    about="Health, traffic, requests and resources of brokers, from their /metrics.",
    matchers=MATCHERS,
    variables=VARIABLES,
    rows={
        "Health": (
            stat("Active controllers", f"sum({CONTROLLER}activecontrollercount{{@}})", bad_below=1),
            stat("Live brokers", f"max({CONTROLLER}activebrokercount{{@}})"),
            stat("Offline partitions", f"max({CONTROLLER}offlinepartitionscount{{@}})", bad_from=1),
            stat("Under-replicated partitions", f"sum({REPLICAS}underreplicatedpartitions{{@}})", bad_from=1),
            stat("Below min.insync.replicas", f"sum({REPLICAS}underminisrpartitioncount{{@}})", bad_from=1),
            stat("Offline log directories", "sum(kafka_log_logmanager_offlinelogdirectorycount{@})", bad_from=1),
            stat("Topics", f"max({CONTROLLER}globaltopiccount{{@}})"),
            stat("Partitions", f"max({CONTROLLER}globalpartitioncount{{@}})"),
            stat("Fenced brokers", f"max({CONTROLLER}fencedbrokercount{{@}})", bad_from=1),
            stat("Offline replicas", f"sum({REPLICAS}offlinereplicacount{{@}})", bad_from=1),
            stat("Not led by their first replica", f"max({CONTROLLER}preferredreplicaimbalancecount{{@}})"),
            stat("Fullest log directory", "max(1 - moldau_log_directory_free_bytes{@}"
                 " / moldau_log_directory_total_bytes{@})", unit="percentunit", bad_from=0.85),
        ),
        "Traffic": (
            graph("Records in", (f'sum by (instance) (rate({TRAFFIC}messagesin_total{{@,topic=""}}{RATE}))',
                                 "{{instance}}"), unit="cps"),
            graph("Bytes in", (f'sum by (instance) (rate({TRAFFIC}bytesin_total{{@,topic=""}}{RATE}))',
                               "{{instance}}"), unit="Bps"),
            graph("Bytes out to consumers", (f'sum by (instance) (rate({TRAFFIC}bytesout_total{{@,topic=""}}{RATE}))',
                                             "{{instance}}"), unit="Bps"),
            graph("Replication",
                  (f"sum by (instance) (rate({TRAFFIC}replicationbytesin_total{{@}}{RATE}))", "{{instance}} in"),
                  (f"sum by (instance) (rate({TRAFFIC}replicationbytesout_total{{@}}{RATE}))", "{{instance}} out"),
                  unit="Bps"),
        ),
        "Requests": (
            graph("Requests", (f"sum by (request) (rate({REQUESTS}requests_total{{@}}{RATE}))", "{{request}}"),
                  unit="reqps", about="Fetch counts those of consumers and of followers once more, as Kafka does."),
            graph("Errors in answers",
                  (f'sum by (request, error) (rate({REQUESTS}errors_total{{@,error!="NONE"}}{RATE}))',
                   "{{request}} {{error}}"), unit="cps"),
            graph("Time of requests, 99 %", (slowest("0.99", "{@}", "request"), "{{request}}"), unit="s",
                  about="A consumer's Fetch waits for records as long as it asks to."),
            graph("Time of Produce",
                  (slowest("0.5", '{@,request="Produce"}', "instance"), "{{instance}} 50 %"),
                  (slowest("0.99", '{@,request="Produce"}', "instance"), "{{instance}} 99 %"), unit="s"),
            graph("Requests that wait", ("sum by (delayedoperation)"
                  " (kafka_server_delayedoperationpurgatory_purgatorysize{@})", "{{delayedoperation}}")),
            graph("Bytes of requests and answers",
                  (f"sum by (instance) (rate(moldau_request_bytes_total{{@}}{RATE}))", "{{instance}} in"),
                  (f"sum by (instance) (rate(moldau_response_bytes_total{{@}}{RATE}))", "{{instance}} out"),
                  unit="Bps"),
        ),
        "Replicas": (
            graph("Changes of ISRs",
                  (f"sum by (instance) (rate({REPLICAS}isrshrinks_total{{@}}{RATE}))", "{{instance}} shrinks"),
                  (f"sum by (instance) (rate({REPLICAS}isrexpands_total{{@}}{RATE}))", "{{instance}} expands"),
                  (f"sum by (instance) (rate({REPLICAS}failedisrupdates_total{{@}}{RATE}))", "{{instance}} refused"),
                  unit="cps"),
            graph("Lag of the worst follower",
                  ("max by (instance) (kafka_server_replicafetchermanager_maxlag{@})", "{{instance}}")),
            graph("Replicas",
                  (f"sum by (instance) ({REPLICAS}partitioncount{{@}})", "{{instance}} replicas"),
                  (f"sum by (instance) ({REPLICAS}leadercount{{@}})", "{{instance}} leads")),
            graph("Groups and transactional ids",
                  (f"sum by (instance) ({COORDINATOR}numgroups{{@}})", "{{instance}} groups"),
                  ("sum by (state) (moldau_transactional_ids{@})", "transactions: {{state}}")),
        ),
        "Connections": (
            graph("Open", (f"sum by (instance, listener) ({SOCKETS}connection_count{{@}})",
                           "{{instance}} {{listener}}")),
            graph("Made", (f"sum by (instance, listener) (rate({SOCKETS}connection_creation_total{{@}}{RATE}))",
                           "{{instance}} {{listener}}"), unit="cps"),
            graph("Failed logins",
                  (f"sum by (instance, listener) (rate({SOCKETS}failed_authentication_total{{@}}{RATE}))",
                   "{{instance}} {{listener}}"), unit="cps"),
            graph("Ended by the broker", ("sum by (listener, reason)"
                  f" (rate(moldau_connections_ended_total{{@}}{RATE}))", "{{listener}} {{reason}}"), unit="cps"),
        ),
        "Resources": (
            graph("Idle share of the event loop",
                  ("avg by (instance) (kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{@})",
                   "{{instance}}"), unit="percentunit", about="Near 0 a broker is at its limit."),
            graph("Processor",
                  (f"sum by (instance) (rate(process_cpu_seconds_total{{@}}{RATE}))", "{{instance}}"),
                  (f"sum by (instance) (rate(moldau_event_loop_cpu_seconds_total{{@}}{RATE}))",
                   "{{instance}} event loop"), unit="percentunit"),
            graph("Memory", ("sum by (instance) (process_resident_memory_bytes{@})", "{{instance}}"), unit="bytes"),
            graph("File descriptors, of those allowed",
                  ("max by (instance) (process_open_fds{@} / process_max_fds{@})", "{{instance}}"), unit="percentunit"),
            graph("Log directories: free",
                  ("min by (instance, logdirectory) (moldau_log_directory_free_bytes{@})",
                   "{{instance}} {{logdirectory}}"), unit="bytes"),
            graph("Cost of /metrics", ("max by (instance) (moldau_metrics_collection_seconds{@})", "{{instance}}"),
                  unit="s"),
        ),
    },
)  # fmt: skip

TOPICS = Dashboard(
    uid="moldau-topics",
    title="Moldau: topics",
    about="Traffic, size and replication by topic, from the /metrics of brokers.",
    matchers=f'{MATCHERS},topic=~"$topic"',
    variables=(*VARIABLES, TOPIC),
    rows={
        "Traffic": (
            graph("Records in", (f'sum by (topic) (rate({TRAFFIC}messagesin_total{{@,topic!=""}}{RATE}))', "{{topic}}"),
                  unit="cps"),
            graph("Bytes in", (f'sum by (topic) (rate({TRAFFIC}bytesin_total{{@,topic!=""}}{RATE}))', "{{topic}}"),
                  unit="Bps"),
            graph("Bytes out", (f'sum by (topic) (rate({TRAFFIC}bytesout_total{{@,topic!=""}}{RATE}))', "{{topic}}"),
                  unit="Bps"),
            graph("Average record", (f'sum by (topic) (rate({TRAFFIC}bytesin_total{{@,topic!=""}}{RATE}))'
                  f' / sum by (topic) (rate({TRAFFIC}messagesin_total{{@,topic!=""}}{RATE}) > 0)', "{{topic}}"),
                  unit="bytes", about="As it came, compressed, with its share of the batch's header."),
            graph("Partitions in requests",
                  (f'sum by (topic) (rate({TRAFFIC}totalproducerequests_total{{@,topic!=""}}{RATE}))',
                   "{{topic}} Produce"),
                  (f'sum by (topic) (rate({TRAFFIC}totalfetchrequests_total{{@,topic!=""}}{RATE}))',
                   "{{topic}} Fetch"), unit="cps"),
            graph("Failed, by no fault of a client",
                  (f'sum by (topic) (rate({TRAFFIC}failedproducerequests_total{{@,topic!=""}}{RATE}))',
                   "{{topic}} Produce"),
                  (f'sum by (topic) (rate({TRAFFIC}failedfetchrequests_total{{@,topic!=""}}{RATE}))',
                   "{{topic}} Fetch"), unit="cps"),
        ),
        "Logs": (
            graph("Size of all replicas", ("sum by (topic) (kafka_log_log_size{@})", "{{topic}}"), unit="bytes"),
            graph("Records kept", ("sum by (topic) (max by (topic, partition) (kafka_log_log_logendoffset{@}"
                  " - kafka_log_log_logstartoffset{@}))", "{{topic}}"), about="Offsets from the first to the last."),
            graph("Segments", ("sum by (topic) (kafka_log_log_numlogsegments{@})", "{{topic}}")),
            graph("Largest partition, beside the average",
                  ("max by (topic) (kafka_log_log_size{@}) / (avg by (topic) (kafka_log_log_size{@}) > 0)",
                   "{{topic}}"),
                  about="1 is even; far more is a key that has most of the records."),
        ),
        "Replication": (
            graph("Under-replicated partitions",
                  ("sum by (topic) (kafka_cluster_partition_underreplicated{@})", "{{topic}}")),
            graph("Below min.insync.replicas",
                  ("sum by (topic) (kafka_cluster_partition_underminisr{@})", "{{topic}}")),
            graph("Replicas out of sync", ("sum by (topic) (kafka_cluster_partition_replicascount{@}"
                  " - kafka_cluster_partition_insyncreplicascount{@})", "{{topic}}")),
            graph("Leaders by broker", ("count by (instance) (kafka_cluster_partition_replicascount{@})",
                                        "{{instance}}")),
        ),
    },
)  # fmt: skip

CLIENTS = Dashboard(
    uid="moldau-clients",
    title="Moldau: clients",
    about="Who asks brokers for what, who gets errors and who is throttled, from the /metrics of brokers.",
    matchers=MATCHERS,
    variables=(*VARIABLES, CLIENT),
    rows={
        "Clients": (
            graph("Requests", ('sum by (client_id) (rate(moldau_client_requests_total{@,client_id=~"$client_id"}'
                               f"{RATE}))", "{{client_id}}"), unit="reqps"),
            graph("Requests by API",
                  ('sum by (request) (rate(moldau_client_requests_total{@,client_id=~"$client_id"}' f"{RATE}))",
                   "{{request}}"), unit="reqps"),
            graph("Bytes of requests",
                  ('sum by (client_id) (rate(moldau_client_bytes_in_total{@,client_id=~"$client_id"}' f"{RATE}))",
                   "{{client_id}}"), unit="Bps"),
            graph("Bytes of answers",
                  ('sum by (client_id) (rate(moldau_client_bytes_out_total{@,client_id=~"$client_id"}' f"{RATE}))",
                   "{{client_id}}"), unit="Bps"),
            graph("Errors", ('sum by (client_id, request, error) (rate(moldau_client_requests_total'
                             '{@,client_id=~"$client_id",error!="NONE"}' f"{RATE}))",
                             "{{client_id}} {{request}} {{error}}"), unit="cps"),
            graph("Requests of ids that are not told apart",
                  (f"sum by (instance) (rate(moldau_clients_left_out_total{{@}}{RATE}))", "{{instance}}"),
                  unit="reqps"),
        ),
        "Quotas": (
            graph("Throttled requests", (f"sum by (request) (rate(moldau_throttled_requests_total{{@}}{RATE}))",
                                         "{{request}}"), unit="reqps"),
            graph("Pauses", (f"sum by (request) (rate(moldau_throttle_seconds_total{{@}}{RATE}))", "{{request}}"),
                  unit="s", about="Seconds of pauses that clients were told to make, in each second."),
        ),
        "Groups": (
            graph("Groups by protocol", ("sum by (protocol) (kafka_server_group_coordinator_metrics_group_count{@})",
                                         "{{protocol}}")),
            graph("Groups that rebalance",
                  (f"sum(({COORDINATOR}numgroupspreparingrebalance{{@}})"
                   f" + ({COORDINATOR}numgroupscompletingrebalance{{@}}))", "classic"),
                  ('sum(kafka_server_group_coordinator_metrics_consumer_group_count{@,state=~"(?i)assigning|reconciling"})',
                   "consumer")),
        ),
    },
)  # fmt: skip
