"""kafka-python's own tests of SASL and TLS, on listeners that run already.

They start a broker for each mechanism, by files that the distribution doesn't bring and with a store in Java's format.
A plugin gives them the listeners of one broker instead; all else is theirs, Apache Kafka's TopicCommand included, which
lists topics over SASL.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests import apache_kafka
from tests.clients.secured_brokers import Listeners
from tests.node.securing.secured import PASSWORDS

FILES = ("test_sasl_integration.py", "test_ssl_integration.py")
PLUGIN = "given_listeners"
SETTINGS = {"num_partitions": "4", "group_initial_rebalance_delay_ms": "0"}

_PLUGIN = """\
import os

import py


def pytest_collection(session):
    from test.integration.fixtures import ExternalService, KafkaFixture

    def open(self):
        self.tmp_dir = self.tmp_dir or py.path.local.mkdtemp()
        self.host, port = os.environ[self.transport + "_ADDRESS"].split(":")
        self.port = int(port)
        self.ssl_dir = os.environ["SSL_DIRECTORY"]
        self.jaas_config = self._jaas_config()
        self.child = ExternalService(self.host, self.port)
        self.running = self.external = True

    KafkaFixture.broker_password = os.environ["BROKER_PASSWORD"]
    KafkaFixture.open = open
"""
_COMMAND_CONFIG = """\
security.protocol={transport}
sasl.mechanism={sasl_mechanism}
sasl.jaas.config={jaas_config}
"""


def environment(listeners: Listeners, scratch: Path) -> dict[str, str]:
    """What the plugin and the fixtures look for, with files in `scratch`."""
    (scratch / f"{PLUGIN}.py").write_text(_PLUGIN)
    resources = scratch / "servers" / "resources" / "default"
    resources.mkdir(parents=True)
    (resources / "sasl_command.conf").write_text(_COMMAND_CONFIG)
    _write_script(scratch / "bin" / "kafka-topics.sh", apache_kafka.java_command("org.apache.kafka.tools.TopicCommand"))
    shutil.copy(listeners.keys.trusted, scratch / "ca-cert")
    return {
        "PROJECT_ROOT": str(scratch),
        "SSL_DIRECTORY": str(scratch),
        "BROKER_PASSWORD": PASSWORDS["alice"],
        **{f"{name}_ADDRESS": address for name, address in listeners.addresses.items()},
    }


def _write_script(path: Path, command: Sequence[str]) -> None:
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    path.chmod(0o755)
