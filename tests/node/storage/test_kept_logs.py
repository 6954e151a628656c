"""What a broker says of its logs when it comes back to its cluster."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.controller.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from moldau.core.ids import TopicId
from moldau.log.directories.log_directories import LogDirectories
from moldau.node.storage import kept_logs
from moldau.node.storage.kept_logs import has_whole_logs, lost_logs, note_boot, note_failure
from tests.log.samples import PARTITION, TOPIC_ID, log_in

STATE = PartitionImage((1, 2, 3), (1, 2, 3), 1)
TOPIC = TopicImage(PARTITION.topic, TOPIC_ID, (STATE,))


class Machine:
    """A broker's log directory, from one start of its machine to the next."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.disk = "disk"
        self.lost: dict[TopicId, tuple[int, ...]] = {}
        self._folder = folder
        self._boot_id = folder / "boot_id"
        self._boots = 0
        self._directories: LogDirectories | None = None
        self._registered: dict[str, str] = {}
        patch.setattr(kept_logs, "BOOT_ID", self._boot_id)
        self.boot()

    def boot(self) -> None:
        self._boots += 1
        self._boot_id.write_text(f"boot {self._boots}")

    def start(self) -> bool:
        """Whether the logs are whole, as a broker finds before the cluster has heard of it."""
        opened = self._directories = LogDirectories.open([self._folder / self.disk], node_id=1)
        broker = BrokerImage(1, {}, directories=self._registered)
        image = ClusterImage(topics={TOPIC.name: TOPIC}, brokers={1: broker})
        is_whole = has_whole_logs(opened)
        self.lost = lost_logs(image, opened, broker_id=1, are_accepted=False)
        note_boot(opened, are_cut=not is_whole)
        log_in(opened)
        return is_whole

    @property
    def directories(self) -> LogDirectories:
        assert self._directories is not None, "it was started"
        return self._directories

    def be_taken_in(self) -> None:
        note_boot(self.directories)
        self._registered = {self.directories.directory_id(path): str(path) for path in self.directories.paths}

    def kill(self) -> None:
        for each in self.directories._directories.values():
            each.lock.release()

    def stop(self) -> None:
        self.directories.close()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """With a broker that was stopped cleanly."""
    machine = Machine(tmp_path, monkeypatch)
    machine.start()
    machine.be_taken_in()
    machine.stop()
    return machine


def test_logs_are_whole_after_a_clean_stop_and_after_a_kill(machine: Machine) -> None:
    assert machine.start()
    machine.be_taken_in()
    machine.kill()
    assert machine.start()
    machine.stop()
    machine.boot()
    assert machine.start()
    machine.kill()


@pytest.mark.parametrize("end", [Machine.kill, Machine.stop], ids=["killed", "stopped"])
def test_logs_that_a_power_failure_cut_are_cut_until_the_cluster_knows(
    machine: Machine, end: Callable[[Machine], None]
) -> None:
    """The broker may end before that, and more than once: its metadata store had no power either."""
    machine.start()
    machine.be_taken_in()
    machine.kill()
    machine.boot()
    for _ in range(3):
        assert not machine.start()
        assert machine.directories.may_have_holes
        end(machine)
    assert not machine.start()
    machine.be_taken_in()
    machine.kill()
    assert machine.start()
    assert not machine.directories.may_have_holes
    machine.kill()


def test_logs_on_a_disk_that_was_replaced_are_lost_until_the_cluster_knows(machine: Machine) -> None:
    """The folders that the first start makes for them are empty."""
    machine.disk = "another"
    for _ in range(2):
        machine.start()
        assert machine.lost == {TOPIC_ID: (0,)}
        machine.stop()
    machine.start()
    machine.be_taken_in()
    machine.kill()
    machine.start()
    assert not machine.lost
    machine.kill()


def test_logs_of_a_directory_that_failed_are_cut_until_the_cluster_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel keeps no page that the disk refused, also while the machine runs on and the broker starts again."""
    boot_id = tmp_path / "boot_id"
    boot_id.write_text("boot")
    monkeypatch.setattr(kept_logs, "BOOT_ID", boot_id)

    def opened() -> LogDirectories:
        return LogDirectories.open([tmp_path / "first", tmp_path / "second"], node_id=1)

    directories = opened()
    note_boot(directories)
    log_in(directories)
    directories.fail(tmp_path / "first", OSError(errno.EIO, os.strerror(errno.EIO)))
    note_failure(directories)
    note_boot(directories)  # as when it is taken in only then
    directories.close()
    directories = opened()
    assert not has_whole_logs(directories)
    note_boot(directories)
    directories.close()
    directories = opened()
    assert has_whole_logs(directories)
    directories.close()
