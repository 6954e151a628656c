"""The facts of a machine, read from /proc, /sys and the kernel. What can't be read is None, and fails nothing else."""

from __future__ import annotations

import os
import resource
import sys
import sysconfig
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from moldau.cli.doctor.machine.clock import clock_state
from moldau.cli.doctor.machine.facts import (
    Cgroup,
    Descriptors,
    DirtyPages,
    Folder,
    MachineFacts,
    Memory,
    PythonBuild,
)
from moldau.cli.doctor.machine.local_brokers import local_brokers
from moldau.cli.doctor.machine.settings import KEYS
from moldau.cli.doctor.machine.system_files import SystemFiles

KIB = 1024
UNLIMITED_V1 = 1 << 60  # what version 1 of cgroups says for no limit is a little below 2**63
MOUNT_FIELDS = 6  # before the separator, of a line of mountinfo


def gather_machine(
    files: SystemFiles, *, data: Sequence[str], dirty: DirtyPages | None = None, user_id: int
) -> MachineFacts:
    """`dirty` is what was seen of unwritten pages by whoever watched them; without it they are looked at once."""
    folders, unusable = _folders(files, data)
    return MachineFacts(
        settings=_settings(files),
        memory=_memory(files),
        dirty=dirty or dirty_pages([sample(files)]),
        shell=_shell(),
        brokers=tuple(local_brokers(files, user_id=user_id)),
        folders=tuple(folders),
        unusable_folders=unusable,
        clock=clock_state(files),
        huge_pages=_huge_pages(files),
        governors=_governors(files),
        cgroup=_cgroup(files),
        python=_python(),
        refused=dict(files.refused),
    )


def _settings(files: SystemFiles) -> dict[str, str]:
    found = {key: files.text(f"/proc/sys/{key.replace('.', '/')}") for key in KEYS}
    return {key: " ".join(value.split()) for key, value in found.items() if value}


def _memory(files: SystemFiles) -> Memory | None:
    rows = (line.split() for line in (files.text("/proc/meminfo") or "").splitlines())
    kib = {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}
    if "MemTotal" not in kib:
        return None
    total, free = kib.get("SwapTotal", 0), kib.get("SwapFree", 0)
    available = kib.get("MemAvailable", kib.get("MemFree", 0))
    return Memory(kib["MemTotal"] * KIB, available * KIB, total * KIB, (total - free) * KIB)


Sample = dict[str, int]


def sample(files: SystemFiles) -> Sample:
    """/proc/vmstat at this moment, in pages; empty where it can't be read."""
    rows = (line.split() for line in (files.text("/proc/vmstat") or "").splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}


def dirty_pages(samples: Sequence[Sample]) -> DirtyPages | None:
    known = [each for each in samples if "nr_dirty" in each]
    if not known:
        return None
    page = os.sysconf("SC_PAGE_SIZE")
    last = known[-1]
    thresholds = [last.get(f"nr_dirty{name}_threshold") for name in ("_background", "")]
    background, threshold = (None if each is None else each * page for each in thresholds)
    return DirtyPages(
        tuple(each["nr_dirty"] * page for each in known),
        tuple(each.get("nr_writeback", 0) * page for each in known),
        background,
        threshold,
    )


def _shell() -> Descriptors:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Descriptors(*(None if each == resource.RLIM_INFINITY else each for each in (soft, hard)))


def _folders(files: SystemFiles, data: Sequence[str]) -> tuple[list[Folder], dict[str, str]]:
    found: list[Folder] = []
    unusable: dict[str, str] = {}
    for path in data:
        try:
            found.append(_folder(files, path))
        except OSError as wrong:
            unusable[path] = wrong.strerror or str(wrong)
    return found, unusable


def _folder(files: SystemFiles, path: str) -> Folder:
    wanted = Path(path).absolute()
    there = next(each for each in (wanted, *wanted.parents) if each.exists())
    if not there.is_dir():
        raise NotADirectoryError(0, "it is no folder")
    if wanted == there and not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(0, f"user {os.geteuid()} may not write there")
    room = os.statvfs(there)
    file_system, mount_point, options = _mount(files, there.resolve())
    return Folder(
        str(path),
        wanted == there,
        file_system,
        mount_point,
        options,
        room.f_blocks * room.f_frsize,
        room.f_bavail * room.f_frsize,
        room.f_files,
        room.f_favail,
    )


def _mount(files: SystemFiles, path: Path) -> tuple[str | None, str, frozenset[str]]:
    """The innermost mount that the path is in; of several at one place the last one covers the others."""
    best: tuple[str | None, str, frozenset[str]] = (None, "", frozenset())
    for line in (files.text("/proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) < MOUNT_FIELDS or not kinds:
            continue
        point = fields[4].encode().decode("unicode_escape") if "\\" in fields[4] else fields[4]
        if path.is_relative_to(point) and len(point) >= len(best[1]):
            shared = kinds[2].split(",") if len(kinds) > 2 else []
            best = (kinds[0], point, frozenset([*fields[5].split(","), *shared]))
    return best


def _huge_pages(files: SystemFiles) -> str | None:
    text = files.text("/sys/kernel/mm/transparent_hugepage/enabled") or ""
    return next((word.strip("[]") for word in text.split() if word.startswith("[")), None)


def _governors(files: SystemFiles) -> frozenset[str]:
    folder = "/sys/devices/system/cpu"
    cpus = [name for name in files.names(folder) if name.startswith("cpu") and name[3:].isdecimal()]
    found = (files.text(f"{folder}/{cpu}/cpufreq/scaling_governor") for cpu in cpus)
    return frozenset(each for each in found if each)


def _cgroup(files: SystemFiles) -> Cgroup | None:
    """Of version 2, or of version 1 where that is mounted; a limit of a group above counts as its own."""
    groups = [line.split(":", 2) for line in (files.text("/proc/self/cgroup") or "").splitlines()]
    unified = next((each[2] for each in groups if len(each) == 3 and not each[1]), "/")
    of_memory = next((each[2] for each in groups if len(each) == 3 and "memory" in each[1].split(",")), "/")
    of_cpu = next((each[2] for each in groups if len(each) == 3 and "cpu" in each[1].split(",")), "/")
    root = "/sys/fs/cgroup"
    most = _least(files, [f"{root}{each}/memory.max" for each in _upwards(unified)])
    used = files.number(f"{root}{unified}/memory.current")
    if most is None:
        v1 = [f"{root}/memory{each}/memory.limit_in_bytes" for each in _upwards(of_memory)]
        most = next((each for each in [_least(files, v1)] if each is not None and each < UNLIMITED_V1), None)
        used = used if used is not None else files.number(f"{root}/memory{of_memory}/memory.usage_in_bytes")
    cpus = _cpus_v2(files, root, unified)
    if cpus is None:
        cpus = _cpus_v1(files, f"{root}/cpu", of_cpu)
    return None if most is None and cpus is None else Cgroup(most, used, cpus)


def _upwards(group: str) -> list[str]:
    path = Path(group)
    return ["" if str(each) == "/" else str(each) for each in (path, *path.parents)]


def _least(files: SystemFiles, paths: Sequence[str]) -> int | None:
    return min((value for value in map(files.number, paths) if value is not None), default=None)


def _cpus_v2(files: SystemFiles, root: str, group: str) -> float | None:
    found = []
    for each in _upwards(group):
        quota, _, period = (files.text(f"{root}{each}/cpu.max") or "max").partition(" ")
        if quota.isdecimal() and period.isdecimal() and int(period):
            found.append(int(quota) / int(period))
    return min(found, default=None)


def _cpus_v1(files: SystemFiles, root: str, group: str) -> float | None:
    found = []
    for each in _upwards(group):
        quota, period = (files.number(f"{root}{each}/cpu.cfs_{name}_us") for name in ("quota", "period"))
        if quota is not None and quota > 0 and period:
            found.append(quota / period)
    return min(found, default=None)


def _python() -> PythonBuild:
    try:
        uvloop = version("uvloop") if find_spec("uvloop") is not None else None
    except PackageNotFoundError:
        uvloop = None
    try:
        import crc32c

        hardware: bool | None = bool(crc32c.hardware_based)
    except (ImportError, AttributeError):
        hardware = None
    try:
        arguments = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    except ImportError:  # a distribution's minimal Python lacks the file
        arguments = ""
    return PythonBuild(
        sys.version_info[:3],
        hasattr(sys, "gettotalrefcount"),
        # A Python that was not made by configure says nothing.
        not arguments or "--enable-optimizations" in arguments,
        uvloop,
        hardware,
    )
