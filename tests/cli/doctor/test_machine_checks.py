"""What each check of the machine says of facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moldau.cli.doctor.findings import Finding, Severity, run_checks
from moldau.cli.doctor.machine.checks import CHECKS
from moldau.cli.doctor.machine.facts import (
    Cgroup,
    ClockState,
    Descriptors,
    DirtyPages,
    Folder,
    LocalBroker,
    MachineFacts,
    Memory,
    PythonBuild,
)
from moldau.cli.doctor.machine.settings import SETTINGS

OK, NOTE, WARNING, PROBLEM = Severity.OK, Severity.NOTE, Severity.WARNING, Severity.PROBLEM
GB, TB = 10**9, 10**12
DISK = Folder("/data", True, "ext4", "/data", frozenset({"rw", "noatime"}), TB, TB // 2, 1_000, 900)
PYTHON = PythonBuild((3, 13, 1), is_debug=False, is_optimised=True, uvloop="0.21.0", has_hardware_crc=True)


def judged(facts: MachineFacts) -> dict[str, Finding]:
    """By the name of the check; the worst where there are several."""
    found: dict[str, Finding] = {}
    for each in run_checks(CHECKS, facts):
        if each.check not in found or found[each.check].severity.rank < each.severity.rank:
            found[each.check] = each
    return found


SETTING_CASES = [
    ("vm.swappiness", "1", OK),
    ("vm.swappiness", "0", NOTE),
    ("vm.swappiness", "10", NOTE),
    ("vm.swappiness", "60", WARNING),
    ("vm.dirty_background_ratio", "5", OK),
    ("vm.dirty_background_ratio", "10", NOTE),
    ("vm.dirty_ratio", "20", NOTE),
    ("vm.dirty_ratio", "60", OK),
    ("vm.dirty_ratio", "80", OK),
    ("vm.dirty_ratio", "95", NOTE),
    ("vm.max_map_count", "65530", NOTE),
    ("vm.max_map_count", "262144", OK),
    ("vm.overcommit_memory", "0", OK),
    ("vm.overcommit_memory", "2", NOTE),
    ("net.core.wmem_default", "131072", OK),
    ("net.core.rmem_default", "65536", NOTE),
    ("net.core.wmem_max", "212992", NOTE),
    ("net.core.rmem_max", "2097152", OK),
    ("net.ipv4.tcp_window_scaling", "0", WARNING),
    ("net.ipv4.tcp_window_scaling", "1", OK),
    ("net.ipv4.tcp_max_syn_backlog", "128", NOTE),
    ("net.ipv4.tcp_max_syn_backlog", "1024", OK),
    ("net.core.somaxconn", "128", NOTE),
    ("net.core.netdev_max_backlog", "1000", NOTE),
    ("net.core.netdev_max_backlog", "1001", OK),
    ("net.ipv4.tcp_wmem", "4096 65536 2048000", OK),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304", NOTE),
    ("net.ipv4.tcp_rmem", "4096 131072 6291456", OK),
    ("net.ipv4.tcp_rmem", "4096 87380 1000000", NOTE),
    ("net.ipv4.tcp_rmem", "nonsense", OK),
    ("vm.swappiness", "nonsense", OK),
]


@pytest.mark.parametrize(("key", "value", "severity"), SETTING_CASES)
def test_settings_of_the_kernel(key: str, value: str, severity: Severity) -> None:
    found = judged(MachineFacts(settings={key: value}))[key]
    assert found.severity is severity
    if severity is not OK:
        first, second = found.do
        assert first.startswith("sysctl -w ")
        assert key in first
        assert second.endswith(">> /etc/sysctl.d/90-moldau.conf")
        assert found.why


def test_what_is_to_be_set_is_what_is_wanted() -> None:
    for setting in SETTINGS:
        assert setting.judge(int(setting.value)) is OK, setting.key


def test_buffers_are_raised_and_never_lowered() -> None:
    found = judged(MachineFacts(settings={"net.ipv4.tcp_wmem": "8192 16384 4194304"}))["net.ipv4.tcp_wmem"]
    assert found.do[0] == "sysctl -w 'net.ipv4.tcp_wmem=8192 65536 4194304'"


def test_a_ratio_that_bytes_replace_is_fine() -> None:
    settings = {"vm.dirty_ratio": "0", "vm.dirty_bytes": "1000000"}
    assert judged(MachineFacts(settings=settings))["vm.dirty_ratio"].severity is OK
    assert judged(MachineFacts(settings={"vm.dirty_ratio": "0"}))["vm.dirty_ratio"].severity is NOTE


def test_what_the_kernel_lacks_is_said_and_no_fault() -> None:
    found = judged(MachineFacts())
    assert {each.severity for each in found.values()} == {OK}
    assert found["vm.swappiness"].seen == "this kernel does not show it here"


def dirty(*pages: int) -> MachineFacts:
    return MachineFacts(dirty=DirtyPages(pages, (0,) * len(pages), background_bytes=1_000, threshold_bytes=2_000))


FACTS_CASES = [
    (dirty(999), "dirty-pages", OK),
    (dirty(10, 1_000, 10), "dirty-pages", NOTE),
    (dirty(10, 1_500), "dirty-pages", WARNING),
    (dirty(2_000, 10), "dirty-pages", PROBLEM),
    (MachineFacts(dirty=DirtyPages((5_000,), (0,), None, None)), "dirty-pages", OK),
    (MachineFacts(memory=Memory(100 * GB, GB, GB, 0)), "swap", OK),
    (MachineFacts(memory=Memory(100 * GB, GB, 8 * GB, 2 * GB)), "swap", WARNING),
    (MachineFacts(memory=Memory(100 * GB, GB, 0, 0)), "swap", OK),
    (MachineFacts(huge_pages="always"), "transparent-huge-pages", NOTE),
    (MachineFacts(huge_pages="madvise"), "transparent-huge-pages", OK),
    (MachineFacts(governors=frozenset({"performance", "powersave"})), "cpu-governor", NOTE),
    (MachineFacts(governors=frozenset({"schedutil"})), "cpu-governor", OK),
    (MachineFacts(cgroup=Cgroup(100 << 20, 1, None)), "cgroup-memory", WARNING),
    (MachineFacts(cgroup=Cgroup(GB, GB - 1, None)), "cgroup-memory", NOTE),
    (MachineFacts(cgroup=Cgroup(GB, GB // 2, None)), "cgroup-memory", OK),
    (MachineFacts(cgroup=Cgroup(None, None, 0.5)), "cgroup-cpu", WARNING),
    (MachineFacts(cgroup=Cgroup(None, None, 2.0)), "cgroup-cpu", OK),
    (MachineFacts(shell=Descriptors(1_024, 1_024)), "open-files", WARNING),
    (MachineFacts(shell=Descriptors(1_024, 20_000)), "open-files", NOTE),
    (MachineFacts(shell=Descriptors(1_024, 1_048_576)), "open-files", OK),
    (MachineFacts(shell=Descriptors(None, None)), "open-files", OK),
    (MachineFacts(brokers=(LocalBroker(7, "Moldau", Descriptors(4, 4), 1, 0),)), "open-files-broker", WARNING),
    (MachineFacts(brokers=(LocalBroker(7, "Moldau", Descriptors(10, 10), 9, 4),)), "open-files-used", WARNING),
    (MachineFacts(brokers=(LocalBroker(7, "Moldau", Descriptors(100, 100), 9, 4),)), "open-files-used", OK),
    (MachineFacts(clock=ClockState(False, "the kernel")), "clock", WARNING),
    (MachineFacts(clock=ClockState(True, "the kernel", 3.0)), "clock", OK),
    (MachineFacts(clock=ClockState(True, "the kernel", 5_000.0)), "clock", WARNING),
    (MachineFacts(python=PYTHON), "python-build", OK),
    (MachineFacts(python=replace(PYTHON, is_debug=True)), "python-build", WARNING),
    (MachineFacts(python=replace(PYTHON, is_optimised=False)), "python-build", NOTE),
    (MachineFacts(python=replace(PYTHON, uvloop=None)), "uvloop", WARNING),
    (MachineFacts(python=replace(PYTHON, has_hardware_crc=False)), "crc32c", NOTE),
    (MachineFacts(refused={"/proc/vmstat": "Permission denied"}), "unreadable", NOTE),
    (MachineFacts(unusable_folders={"/x": "it is no folder"}), "log-directory", WARNING),
    (MachineFacts(folders=(DISK,)), "file-system", OK),
    (MachineFacts(folders=(DISK,)), "mount-options", OK),
    (MachineFacts(folders=(DISK,)), "free-space", OK),
    (MachineFacts(folders=(DISK,)), "free-inodes", OK),
    *(
        (MachineFacts(folders=(replace(DISK, file_system=kind),)), "file-system", severity)
        for kind, severity in (
            ("xfs", OK), ("btrfs", NOTE), ("nfs4", WARNING), ("tmpfs", WARNING), ("overlay", WARNING), (None, OK),
        )
    ),
    *(
        (MachineFacts(folders=(replace(DISK, options=frozenset(options)),)), "mount-options", severity)
        for options, severity in ((("rw", "relatime"), NOTE), (("rw",), WARNING), (("ro", "noatime"), PROBLEM))
    ),
    (MachineFacts(folders=(replace(DISK, free_bytes=TB // 10),)), "free-space", WARNING),
    (MachineFacts(folders=(replace(DISK, free_bytes=TB // 100),)), "free-space", PROBLEM),
    (MachineFacts(folders=(replace(DISK, free_inodes=10),)), "free-inodes", WARNING),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "check", "severity"), FACTS_CASES)
def test_facts_of_a_machine(facts: MachineFacts, check: str, severity: Severity) -> None:
    found = judged(facts)[check]
    assert found.severity is severity
    assert bool(found.why and found.do) == (severity is not OK), "what is not fine has a reason and a way out"


def test_the_peak_is_what_counts() -> None:
    found = judged(dirty(10, 1_200, 30))["dirty-pages"]
    assert "1.2 kB dirty" in found.seen
    assert "peak of 3 samples" in found.seen


def test_a_folder_to_be_says_so() -> None:
    found = judged(MachineFacts(folders=(replace(DISK, exists=False),)))["free-space"]
    assert found.subject == "/data (not there yet)"
