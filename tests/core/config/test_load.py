from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.core.config.definitions import ConfigError
from moldau.core.config.environment import cluster_id, environment_key
from moldau.core.config.listeners import ListenerConfig
from moldau.core.config.load import load_config, parse_overrides, parse_properties
from moldau.core.config.settings import refuse_unsupported

# In the form of the file that comes with Kafka 4: config/kraft/server.properties of 3.x with the keys that 4 added; put
# together from that file and from descriptions, not copied from the archive of a release.
KAFKA_4_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""

# config/kraft/server.properties of Kafka 3.x: every key that it sets.
KAFKA_3_PROPERTIES = (
    KAFKA_4_PROPERTIES.replace("bootstrap.servers=localhost:9093", "voters=1@localhost:9093")
    .replace(",CONTROLLER://localhost:9093", "")
    .replace("share.coordinator.state.topic.replication.factor=1\n", "")
    .replace("share.coordinator.state.topic.min.isr=1\n", "")
)

KRAFT_PROPERTIES = """\
# as Kafka shipped it before 4.0
process.roles=broker,controller
node.id=3
controller.quorum.voters=3@localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
log.dirs=/tmp/a,/tmp/b
log.retention.hours=168
"""


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1", {"a": "1"}),
        ("a : 1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("  a=1", {"a": "1"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("# a=1\n! b=2\n\n", {}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1,\\\n   2,\\\n   3", {"a": "1,2,3"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a\\:b c", {"a:b": "c"}),
        ("a=x=y:z", {"a": "x=y:z"}),
        ("a=\\u0041\\t\\n\\q", {"a": "A\t\nq"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=trailing  ", {"a": "trailing  "}),
        ("a=1 # no comment", {"a": "1 # no comment"}),
        ("a=held\\", {"a": "held"}),
    ],
)
def test_properties_follow_javas_rules(text: str, values: dict[str, str]) -> None:
    assert parse_properties(text) == values


@given(st.text())
def test_any_text_is_some_properties(text: str) -> None:
    parse_properties(text)


@given(
    st.dictionaries(st.from_regex(r"[a-z][a-z.]{0,20}", fullmatch=True), st.from_regex(r"[a-z0-9:/=]*", fullmatch=True))
)
def test_written_properties_are_read_back(values: dict[str, str]) -> None:
    written = "".join(f"{name} = {value}\n" for name, value in values.items())
    assert parse_properties(written) == values


def test_a_file_made_for_kafka_is_accepted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(KRAFT_PROPERTIES + "my.plugin.key=1\n")
    with caplog.at_level(logging.INFO):
        config = load_config(properties, {}, {})
    assert config.node_id == 3
    assert config.listeners == (ListenerConfig("PLAINTEXT", "", 9092),)
    assert config.advertised_listeners == (ListenerConfig("PLAINTEXT", "localhost", 9092),)
    assert config.log_dirs == ("/tmp/a", "/tmp/b")
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warned == ["unknown configuration keys are ignored: my.plugin.key"]


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("num.partitions=2\nlog.retention.ms=2\nlog.segment.bytes=2000000\nbroker.id=2")
    environment = {"MOLDAU_NUM_PARTITIONS": "3", "MOLDAU_LOG_RETENTION_MS": "3", "MOLDAU_NOT_A_KEY": "x", "PATH": "/"}
    config = load_config(properties, environment, {"num.partitions": "4", "node.id": "4"}, defaults={"log.dirs": "d"})
    assert (config.int("num.partitions"), config.node_id, config.int("broker.id"), config.log_dirs) == (4, 4, 4, ("d",))
    assert (config.topic_defaults.retention_ms, config.topic_defaults.segment_bytes) == (3, 2_000_000)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def refused(values: dict[str, str], tmp_path: Path) -> str:
    """The one line that a start with these keys in its file ends with."""
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    with pytest.raises(ConfigError) as wrong:
        load_config(file, {}, {})
    line = str(wrong.value)
    assert "\n" not in line
    assert str(file) in line
    return line


def test_the_file_of_a_combined_node_of_kafka_3_starts_a_broker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(KAFKA_3_PROPERTIES)
    config = load_config(properties, {}, {})
    assert [str(each) for each in config.listeners] == ["PLAINTEXT://:9092"]
    assert warnings(caplog) == []


def test_a_file_in_the_form_of_kafka_4_starts_a_broker(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(KAFKA_4_PROPERTIES)
    config = load_config(properties, {}, {})
    assert [str(each) for each in config.listeners] == ["PLAINTEXT://:9092"]
    assert [str(each) for each in config.advertised_listeners] == ["PLAINTEXT://localhost:9092"]
    assert warnings(caplog) == [
        "configuration keys without effect: share.coordinator.state.topic.min.isr, "
        "share.coordinator.state.topic.replication.factor (share groups are not supported)"
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("authorizer.class.name", "com.example.Authorizer"),
        ("super.users", "User:admin"),
        ("allow.everyone.if.no.acl.found", "false"),
        ("principal.builder.class", "com.example.Builder"),
        ("sasl.made.up", "x"),
        ("sasl.jaas.config", "PlainLoginModule required;"),
        ("listener.name.inside.sasl.jaas.config", "PlainLoginModule required;"),
        ("listener.name.inside.plain.sasl.server.callback.handler.class", "com.example.Handler"),
        ("sasl.kerberos.made.up", "x"),
        ("ssl.engine.factory.class", "com.example.Engine"),
        ("ssl.protocol", "SSLv3"),
        ("listener.name.inside.principal.builder.class", "com.example.Builder"),
        ("security.inter.broker.protocol", "SSL"),
        ("security.providers", "com.example.Provider"),
        ("zookeeper.ssl.ocsp.enable", "true"),
        ("zookeeper.ssl.made.up", "x"),
        ("zookeeper.clientCnxnSocket", "com.example.Socket"),
        ("metric.reporters", "com.example.Reporter"),
        ("create.topic.policy.class.name", "com.example.Policy"),
        ("client.quota.callback.class", "com.example.Quota"),
        ("quota.producer.default", "1000000"),
        ("config.providers", "file"),
        ("config.providers.file.class", "org.apache.kafka.common.config.provider.FileConfigProvider"),
        ("remote.log.storage.system.enable", "true"),
        ("metadata.log.dir", "/metadata"),
        ("process.roles", "broker"),
        ("process.roles", "controller"),
        ("controller.quorum.voters", "0@a:9093,1@b:9093"),
        ("controller.quorum.voters", "7@localhost:9093"),
        ("controller.quorum.bootstrap.servers", "a:9093,b:9093"),
        ("inter.broker.listener.name", "INSIDE"),
        ("log.segment.ms", "1000"),
        ("log.cleaner.enabled", "false"),
        ("retention.ms", "1000"),
    ],
)
def test_a_start_that_relies_on_what_is_not_there_is_refused(key: str, value: str, tmp_path: Path) -> None:
    assert key in refused({key: value}, tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("authorizer.class.name", ""),
        ("super.users", ""),
        ("allow.everyone.if.no.acl.found", "true"),
        ("ssl.client.auth", "none"),
        ("ssl.endpoint.identification.algorithm", ""),
        ("ssl.protocol", "TLSv1.2"),
        (
            "sasl.server.callback.handler.class",
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
        ),
        (
            "sasl.login.callback.handler.class",
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        ),
        (
            "sasl.oauthbearer.jwt.retriever.class",
            "org.apache.kafka.common.security.oauthbearer.ClientCredentialsJwtRetriever",
        ),
        ("sasl.enabled.mechanisms", "GSSAPI"),
        ("security.inter.broker.protocol", "PLAINTEXT"),
        ("remote.log.storage.system.enable", "false"),
        ("metric.reporters", "org.apache.kafka.common.metrics.JmxReporter"),
        ("zookeeper.set.acl", "false"),
        ("zookeeper.clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNetty"),
        ("zookeeper.ssl.protocol", "TLSv1.2"),
        ("process.roles", "broker,controller"),
        ("controller.quorum.voters", "0@localhost:9093"),
    ],
)
def test_a_value_that_asks_for_nothing_is_fine(key: str, value: str, caplog: pytest.LogCaptureFixture) -> None:
    load_config(None, {}, {key: value})
    assert warnings(caplog) == []


def test_several_refused_keys_are_told_together(tmp_path: Path) -> None:
    line = refused({"authorizer.class.name": "a.B", "ssl.my.password": "hush", "num.partitions": "0"}, tmp_path)
    assert line.startswith("Invalid value a.B for configuration authorizer.class.name: Java classes cannot be loaded")
    assert "; use org.apache.kafka.metadata.authorizer.StandardAuthorizer" in line
    assert "refused too: ssl.my.password" in line


@pytest.mark.parametrize("key", ["sasl.jaas.config", "listener.name.a.sasl.jaas.config", "ssl.my.secret"])
def test_a_secret_is_not_printed(key: str, tmp_path: Path) -> None:
    assert "hush" not in refused({key: "hush"}, tmp_path)


def test_the_right_name_is_told(tmp_path: Path) -> None:
    assert "use log.roll.ms" in refused({"log.segment.ms": "1"}, tmp_path)
    assert "use log.cleaner.enable" in refused({"log.cleaner.enabled": "1"}, tmp_path)


def test_a_wrong_value_is_told_with_its_place(tmp_path: Path) -> None:
    line = refused({"num.partitions": "many"}, tmp_path)
    assert line.startswith("Invalid value many for configuration num.partitions: Not a number of type INT (")
    with pytest.raises(ConfigError, match="environment variable KAFKA_NUM_PARTITIONS"):
        load_config(None, {"KAFKA_NUM_PARTITIONS": "0"}, {})
    with pytest.raises(ConfigError, match="command line"):
        load_config(None, {"KAFKA_NUM_PARTITIONS": "1"}, {"num.partitions": "0"})


def test_an_unknown_key_is_reported_with_what_was_meant(caplog: pytest.LogCaptureFixture) -> None:
    load_config(None, {}, {"num.partitons": "3", "acme.plugin": "1"})
    assert warnings(caplog) == [
        "unknown configuration keys are ignored: acme.plugin, num.partitons (did you mean num.partitions?)"
    ]


def test_a_key_without_effect_is_reported_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    load_config(None, {}, {"num.io.threads": "9", "num.network.threads": "3", "inter.broker.protocol.version": "3.9"})
    assert [line.partition(" (")[0] for line in warnings(caplog)] == [
        "configuration keys without effect: inter.broker.protocol.version",
        "configuration keys without effect: num.io.threads",
    ]


def test_a_limit_of_a_listener_that_is_not_there_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    load_config(None, {}, {"listener.name.inside.max.connections": "3"})
    assert warnings(caplog) == [
        "listener.name.inside.max.connections is ignored (command line): the listeners are PLAINTEXT"
    ]


# The environment


def test_a_variable_that_names_no_key_is_reported_unless_it_is_the_tools(caplog: pytest.LogCaptureFixture) -> None:
    environment = {"MOLDAU_NUM_PARTITONS": "3", "MOLDAU_BOOTSTRAP_SERVERS": "here:9092", "MOLDAU_NUM_PARTITIONS": "2"}
    with caplog.at_level(logging.WARNING):
        assert load_config(None, environment, {}).int("num.partitions") == 2
    assert caplog.messages == ["environment variables that name no configuration key are ignored: MOLDAU_NUM_PARTITONS"]


def test_the_variables_of_opentelemetry_count(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("otel.exporter.otlp.endpoint=http://file:4318\n")
    theirs = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://all:4318", "OTEL_METRIC_EXPORT_INTERVAL": "5000"}
    found = load_config(properties, theirs, {})
    assert (found.otlp_endpoint, found.int("otel.metric.export.interval")) == ("http://all:4318", 5_000)
    both = {**theirs, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://metrics/v1/metrics"}
    assert load_config(properties, both, {}).otlp_endpoint == "http://metrics/v1/metrics"
    ours = {**theirs, "MOLDAU_OTEL_EXPORTER_OTLP_ENDPOINT": "http://ours:4318"}
    assert load_config(None, ours, {}).otlp_endpoint == "http://ours:4318"
    for disabled in ({"OTEL_SDK_DISABLED": "true"}, {"OTEL_METRICS_EXPORTER": "none"}):
        assert not load_config(None, {**theirs, **disabled}, {}).has_metrics
    with pytest.raises(ConfigError, match="environment variable OTEL_EXPORTER_OTLP_ENDPOINT"):
        load_config(None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, {})


def test_the_variables_of_container_images_count(caplog: pytest.LogCaptureFixture) -> None:
    environment = {
        "KAFKA_NODE_ID": "7",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "7@localhost:9093",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENERS": "INSIDE://:19092,OUTSIDE://:9092,CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": "INSIDE://kafka:19092,OUTSIDE://localhost:9092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "INSIDE",
        "KAFKA_LISTENER_NAME_OUTSIDE_MAX_CONNECTIONS": "12",
        "KAFKA_CFG_NUM_PARTITIONS": "3",
        "KAFKA_HEAP_OPTS": "-Xmx1G",
        "KAFKA_JMX_PORT": "9101",
        "KAFKA_LOG4J_ROOT_LOGLEVEL": "INFO",
        "KAFKA_VERSION": "4.3.1",
    }
    with caplog.at_level(logging.INFO):
        config = load_config(None, environment, {})
    assert [str(each) for each in config.listeners] == ["INSIDE://:19092", "OUTSIDE://:9092"]
    assert (config.node_id, config.int("num.partitions")) == (7, 3)
    assert config.listener_int("OUTSIDE", "max.connections") == 12
    assert config.listener_int("INSIDE", "max.connections") == 2**31 - 1
    said = [line for line in caplog.messages if line.startswith("set by the environment: ")]
    assert len(said) == 1
    assert "KAFKA_LISTENERS" in said[0]
    assert "HEAP" not in "".join(caplog.messages)
    assert warnings(caplog) == []


def test_the_file_gives_way_to_kafkas_variables_and_they_to_ours(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nlog.segment.bytes=2000000\nlog.retention.ms=2\n")
    environment = {"KAFKA_LOG_SEGMENT_BYTES": "3000000", "KAFKA_LOG_RETENTION_MS": "3", "MOLDAU_LOG_RETENTION_MS": "4"}
    config = load_config(file, environment, {})
    assert (config.int("num.partitions"), config.int("log.segment.bytes")) == (2, 3_000_000)
    assert config.int("log.retention.ms") == 4


def test_a_secured_environment_is_refused_by_the_variable() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config.*environment variable KAFKA_SASL_JAAS_CONFIG"):
        load_config(None, {"KAFKA_SASL_JAAS_CONFIG": "PlainLoginModule required;"}, {})


def test_what_kubernetes_tells_about_a_service_called_kafka_is_no_configuration(
    caplog: pytest.LogCaptureFixture,
) -> None:
    environment = {
        "KAFKA_PORT": "tcp://10.0.0.1:9092",
        "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
        "KAFKA_SERVICE_HOST": "10.0.0.1",
        "KAFKA_SERVICE_PORT": "9092",
    }
    assert str(load_config(None, environment, {}).listeners[0]) == "PLAINTEXT://:9092"
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("variable", "key"),
    [("A_B", "a.b"), ("A__B", "a_b"), ("A___B", "a-b"), ("LOG_DIRS", "log.dirs")],
)
def test_underscores_are_read_as_the_images_do(variable: str, key: str) -> None:
    assert environment_key(variable) == key


def test_a_cluster_id_is_one_that_kafka_made(caplog: pytest.LogCaptureFixture) -> None:
    assert cluster_id({"CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw"}) == "4L6g3nShT-eMCtK--X86sw"
    assert cluster_id({}) is None
    assert warnings(caplog) == []
    assert cluster_id({"CLUSTER_ID": "production"}) is None
    assert "CLUSTER_ID=production is ignored" in warnings(caplog)[0]


# Names of older files


@pytest.mark.parametrize(
    ("values", "listeners", "advertised"),
    [
        ({"port": "9095"}, "PLAINTEXT://127.0.0.1:9095", "PLAINTEXT://127.0.0.1:9095"),
        ({"host.name": "::1"}, "PLAINTEXT://[::1]:9092", "PLAINTEXT://[::1]:9092"),
        ({"port": "0", "advertised.port": "1"}, "PLAINTEXT://127.0.0.1:0", "PLAINTEXT://127.0.0.1:1"),
        ({"advertised.host.name": "a"}, "PLAINTEXT://:9092", "PLAINTEXT://a:9092"),
        ({"port": "1", "listeners": "PLAINTEXT://b:2"}, "PLAINTEXT://b:2", "PLAINTEXT://b:2"),
    ],
)
def test_a_host_and_a_port_make_a_listener(
    values: dict[str, str], listeners: str, advertised: str, caplog: pytest.LogCaptureFixture
) -> None:
    config = load_config(None, {}, values)
    assert [str(each) for each in config.listeners] == [listeners]
    assert [str(each) for each in config.advertised_listeners] == [advertised]
    assert len(warnings(caplog)) == len(values.keys() - {"listeners"})


def test_the_older_bound_of_timestamps_sets_both_newer_ones() -> None:
    older = "log.message.timestamp.difference.max.ms"
    after = "log.message.timestamp.after.max.ms"
    assert load_config(None, {}, {older: "5"}).topic_defaults.message_timestamp_after_max_ms == 5
    both = load_config(None, {}, {older: "5", after: "6"}).topic_defaults
    assert (both.message_timestamp_before_max_ms, both.message_timestamp_after_max_ms) == (5, 6)


def test_a_bad_port_is_told_by_the_name_that_was_used(tmp_path: Path) -> None:
    assert "port in" in refused({"port": "many"}, tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"/none\.properties can't be read: No such file or directory; expected a file"
    ):
        load_config(tmp_path / "none.properties", {}, {})


@pytest.mark.parametrize(
    "content", [b"# f\xfcr\nnum.partitions=7\n", b"\xef\xbb\xbfnum.partitions=7\n", "# für\nnum.partitions=7".encode()]
)
def test_a_file_may_be_latin_1_as_javas_are_or_utf_8(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_bytes(content)
    assert load_config(tmp_path / "server.properties", {}, {}).value("num.partitions") == 7


@pytest.mark.parametrize(
    "text",
    [
        "listeners=SASL_SSL://:9092\n",
        "listeners=PLAINTEXT://:9091,ssl://:9092\n",
        "listeners=INSIDE://:9092\nlistener.security.protocol.map=INSIDE:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT\n",
    ],
)
def test_another_address_does_not_open_listeners_that_are_secured(text: str, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(text)
    with pytest.raises(
        ConfigError, match=r"configuration listeners: --host .* do not replace S\w+; .* \(.*properties\)"
    ):
        load_config(tmp_path / "server.properties", {}, {}, address="PLAINTEXT://127.0.0.1:0")
    plain = {"listeners": "PLAINTEXT://127.0.0.1:0"}
    loaded = load_config(tmp_path / "server.properties", {}, plain, address="PLAINTEXT://127.0.0.1:1")
    assert [str(each) for each in loaded.listeners] == [plain["listeners"]]


def test_an_address_takes_the_place_of_plain_listeners(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("listeners=PLAINTEXT://:9092,CONTROLLER://:9093\n")
    loaded = load_config(tmp_path / "server.properties", {}, {}, address="PLAINTEXT://127.0.0.1:0")
    assert [str(each) for each in loaded.listeners] == ["PLAINTEXT://127.0.0.1:0"]


@pytest.mark.parametrize(("key", "value"), [("remote.log.storage.system.enable", "true")])
def test_a_refusal_does_not_offer_the_default_of_what_is_not_there(key: str, value: str, tmp_path: Path) -> None:
    line = refused({key: value}, tmp_path)
    assert "not supported yet" in line
    assert "allowed is" not in line


def test_the_secret_of_delegation_tokens_has_an_older_name(caplog: pytest.LogCaptureFixture) -> None:
    older, name = {"delegation.token.master.key": "hush"}, "delegation.token.secret.key"
    assert load_config(None, {}, older).text(name) == "hush"
    assert load_config(None, {}, {**older, name: "another"}).text(name) == "another"
    assert len(caplog.messages) == 2
    assert "hush" not in caplog.text


def test_overrides_are_key_value_pairs() -> None:
    assert parse_overrides(["a=1", " b = c=d"]) == {"a": "1", "b": "c=d"}
    with pytest.raises(ConfigError, match=r"^Invalid value 'a' for --override: expected key=value$"):
        parse_overrides(["a"])


STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.mark.parametrize(
    "name", [STANDARD, "kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer"]
)
def test_an_authorizer_of_kafka_controls_access(name: str, caplog: pytest.LogCaptureFixture) -> None:
    values = {"authorizer.class.name": name, "super.users": "User:a;User:b", "allow.everyone.if.no.acl.found": "true"}
    control = load_config(None, {}, values).access_control
    assert control is not None
    assert (control.super_users, control.allow_everyone_if_no_acl_found) == ("User:a;User:b", True)
    assert warnings(caplog) == []
    assert load_config(None, {}, {"authorizer.class.name": name}).access_control == ("", False)


@pytest.mark.parametrize(
    ("key", "value"),
    [("super.users", "User:a;bob"), ("super.users", "User:a, User:b"), ("allow.everyone.if.no.acl.found", "maybe")],
)
def test_what_an_authorizer_cannot_read_is_refused(key: str, value: str, tmp_path: Path) -> None:
    assert key in refused({"authorizer.class.name": STANDARD, key: value}, tmp_path)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("listener.name.EXTERNAL.ssl.client.auth", "listener.name.external.ssl.client.auth"),
        ("listener.name.External.ssl.client.auth", "listener.name.external.ssl.client.auth"),
        ("listener.name.a.PLAIN.connections.max.reauth.ms", "listener.name.a.plain.connections.max.reauth.ms"),
        ("listener.name.A.Plain.sasl.jaas.config", "listener.name.a.plain.sasl.jaas.config"),
    ],
)
def test_a_listeners_key_in_a_spelling_that_kafka_passes_over_is_refused(key: str, meant: str, tmp_path: Path) -> None:
    line = refused({key: "7"}, tmp_path)
    assert key in line
    assert f"use {meant}" in line
    with pytest.raises(ConfigError, match=meant):
        refuse_unsupported({key: "7"})  # nor in a running broker
