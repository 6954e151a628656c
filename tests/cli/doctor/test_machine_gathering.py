"""Facts of a machine, from files that stand for /proc and /sys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moldau.cli.doctor.machine.facts import Cgroup, Descriptors, DirtyPages, LocalBroker, MachineFacts, Memory
from moldau.cli.doctor.machine.gathering import dirty_pages, gather_machine
from moldau.cli.doctor.machine.local_brokers import kind_of
from moldau.cli.doctor.machine.system_files import SystemFiles
from moldau.cli.doctor.machine.watching import watch_dirty_pages

PAGE = os.sysconf("SC_PAGE_SIZE")
FILES = {
    "proc/sys/vm/swappiness": "60\n",
    "proc/sys/net/ipv4/tcp_wmem": "4096\t16384\t4194304\n",
    "proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 400 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n",
    "proc/vmstat": "nr_dirty 5\nnr_writeback 2\nnr_dirty_threshold 100\nnr_dirty_background_threshold 50\n",
    "proc/self/mountinfo": (
        "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n2 1 0:4 / {data} rw,noatime - xfs /dev/vdb rw\nnonsense\n"
    ),
    "proc/self/cgroup": "0::/broker\n",
    "sys/fs/cgroup/broker/memory.max": "max\n",
    "sys/fs/cgroup/broker/memory.current": "4000\n",
    "sys/fs/cgroup/memory.max": "9000\n",
    "sys/fs/cgroup/broker/cpu.max": "150000 100000\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpufreq/other": "",
    "proc/41/cmdline": "/opt/moldau/bin/python\0-m\0moldau\0start\0",
    "proc/41/limits": "Limit  Soft Limit  Hard Limit  Units\nMax open files     1024     unlimited     files\n",
    "proc/42/cmdline": "vi\0moldau\0",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{data}", str(tmp_path / "data")))
    (tmp_path / "data" / "logs").mkdir(parents=True)
    descriptors = tmp_path / "root" / "proc/41/fd"
    descriptors.mkdir()
    for number, target in enumerate(("/dev/null", "socket:[7]", "socket:[8]")):
        (descriptors / str(number)).symlink_to(target)
    return tmp_path / "root"


def gathered(root: Path, *data: Path, user_id: int | None = None) -> MachineFacts:
    owner = os.geteuid() if user_id is None else user_id
    return gather_machine(SystemFiles(root), data=[str(each) for each in data], user_id=owner)


def test_files_become_facts(root: Path) -> None:
    facts = gathered(root)
    assert facts.settings["vm.swappiness"] == "60"
    assert facts.settings["net.ipv4.tcp_wmem"] == "4096 16384 4194304"
    assert "vm.dirty_ratio" not in facts.settings
    assert facts.memory == Memory(1_024_000, 409_600, 51_200, 30_720)
    assert facts.dirty == DirtyPages((5 * PAGE,), (2 * PAGE,), 50 * PAGE, 100 * PAGE)
    assert facts.cgroup == Cgroup(9_000, 4_000, 1.5), "a limit of the group above counts"
    assert facts.huge_pages == "madvise"
    assert facts.governors == {"performance", "powersave"}
    assert facts.brokers == (LocalBroker(41, "Moldau", Descriptors(1_024, None), 3, 2),)
    assert facts.python is not None
    assert facts.python.uvloop is not None
    assert facts.shell is not None
    assert facts.refused == {}


def test_the_innermost_mount_is_that_of_a_folder(root: Path) -> None:
    data = root.parent / "data"
    inside, new, elsewhere = gathered(root, data / "logs", data / "new" / "deep", root.parent).folders
    assert (inside.file_system, inside.exists) == ("xfs", True)
    assert inside.options >= {"rw", "noatime"}
    assert (new.file_system, new.exists, new.mount_point) == ("xfs", False, str(data))
    assert (elsewhere.file_system, elsewhere.mount_point) == ("ext4", "/")
    assert 0 < inside.free_bytes <= inside.total_bytes


def test_what_is_no_folder_is_told(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert gathered(root, file).unusable_folders == {str(file): "it is no folder"}


def test_brokers_of_others_are_left_alone(root: Path) -> None:
    assert gathered(root, user_id=os.geteuid() + 4_711).brokers == ()


def test_an_empty_machine_fails_nothing(tmp_path: Path) -> None:
    facts = gathered(tmp_path)
    assert (facts.memory, facts.dirty, facts.cgroup, facts.settings) == (None, None, None, {})


def test_a_file_that_cannot_be_read_is_told_and_the_rest_is_read(root: Path) -> None:
    # A folder in the place of a file can't be read by anybody, root included.
    path = root / "proc/sys/vm/dirty_ratio"
    path.mkdir()
    facts = gathered(root)
    assert facts.refused == {"/proc/sys/vm/dirty_ratio": "Is a directory"}
    assert facts.settings["vm.swappiness"] == "60"


def test_version_1_of_cgroups(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:memory:/job\n3:cpu,cpuacct:/job\n",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "5000\n",
        "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "100\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63 - 4096}\n",
        "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "50000\n",
        "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert gathered(tmp_path).cgroup == Cgroup(5_000, 100, 0.5)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["/opt/bin/moldau", "start", "--port", "0"], "Moldau"),
        (["python", "-P", "-m", "moldau", "start"], "Moldau"),
        (["java", "-cp", "x", "kafka.Kafka", "server.properties"], "Apache Kafka"),
        (["moldau", "doctor"], None),
        (["vi", "start"], None),
        ([], None),
    ],
)
def test_brokers_are_known_by_their_command(words: list[str], kind: str | None) -> None:
    assert kind_of(words) == kind


def test_watching_keeps_every_sample(root: Path) -> None:
    told: list[str] = []
    vmstat = root / "proc/vmstat"

    def tell(line: str) -> None:
        told.append(line)
        vmstat.write_text(f"nr_dirty {5 - len(told)}\nnr_writeback {len(told)}\n")

    seen = watch_dirty_pages(SystemFiles(root), 0.2, tell=tell, pause_s=0.06)
    assert seen is not None
    assert len(seen.dirty) == len(told) >= 3
    assert seen.peak_bytes == 5 * PAGE
    assert max(seen.writeback) == (len(told) - 1) * PAGE
    assert told[0].startswith("watching unwritten pages: 0 of 0 s")


def test_watching_ends_early_with_what_was_seen(root: Path) -> None:
    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    seen = watch_dirty_pages(SystemFiles(root), 60.0, tell=interrupt)
    assert seen is not None
    assert seen.dirty == (5 * PAGE,)


def test_watching_where_nothing_is_told(tmp_path: Path) -> None:
    assert watch_dirty_pages(SystemFiles(tmp_path), 60.0, tell=lambda line: None) is None
    assert dirty_pages([{}]) is None
