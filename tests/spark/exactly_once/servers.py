"""What a run stands on and may lose for a moment: a broker of either kind, and a database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import moldau
from tests.apache_kafka import ApacheKafka


class CrashingBroker(Protocol):
    """A broker on one port with one folder of data, that can be killed and is there again at once."""

    @property
    def bootstrap(self) -> str: ...

    def crash(self) -> None: ...

    def stop(self) -> None: ...


class CrashingMoldau:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broker = moldau.run(data_dir=folder)
        self.port = self.broker.port

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap_servers

    def crash(self) -> None:
        self.broker.kill()
        self.broker = moldau.run(data_dir=self.folder, port=self.port)

    def stop(self) -> None:
        self.broker.stop()


class CrashingApacheKafka:
    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.broker = ApacheKafka(directory=folder)
        self.broker.start()

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    def crash(self) -> None:
        self.broker.kill()
        self.broker.start()

    def stop(self) -> None:
        self.broker.stop()


BROKERS: dict[str, Callable[[Path], CrashingBroker]] = {"moldau": CrashingMoldau, "apache": CrashingApacheKafka}
