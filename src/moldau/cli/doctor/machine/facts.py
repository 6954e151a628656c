"""What is known of this machine at a moment; None where nobody tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Memory:
    total_bytes: int
    available_bytes: int
    swap_total_bytes: int
    swap_used_bytes: int


@dataclass(frozen=True, slots=True)
class DirtyPages:
    """Samples in the order in which they were taken, and the kernel's own thresholds, all in bytes."""

    dirty: tuple[int, ...]
    writeback: tuple[int, ...]
    background_bytes: int | None
    """Above it the kernel writes in the background."""
    threshold_bytes: int | None
    """At it whoever writes has to wait."""

    @property
    def peak_bytes(self) -> int:
        return max(self.dirty, default=0)


@dataclass(frozen=True, slots=True)
class Descriptors:
    """None is unlimited."""

    soft: int | None
    hard: int | None


@dataclass(frozen=True, slots=True)
class LocalBroker:
    pid: int
    kind: str
    limits: Descriptors | None
    open_files: int | None
    sockets: int | None


@dataclass(frozen=True, slots=True)
class Folder:
    """A log directory, or the nearest folder above it that exists: there it would be made."""

    path: str
    exists: bool
    file_system: str | None
    mount_point: str
    options: frozenset[str]
    total_bytes: int
    free_bytes: int
    inodes: int
    free_inodes: int


@dataclass(frozen=True, slots=True)
class ClockState:
    is_synchronised: bool | None
    told_by: str
    max_error_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Cgroup:
    memory_max_bytes: int | None
    memory_used_bytes: int | None
    cpus: float | None


@dataclass(frozen=True, slots=True)
class PythonBuild:
    version: tuple[int, int, int]
    is_debug: bool
    is_optimised: bool
    uvloop: str | None
    has_hardware_crc: bool | None


@dataclass(frozen=True, slots=True)
class MachineFacts:
    settings: Mapping[str, str] = field(default_factory=dict)
    """By the names that `sysctl` has for them; those that the kernel lacks are missing."""
    memory: Memory | None = None
    dirty: DirtyPages | None = None
    shell: Descriptors | None = None
    brokers: tuple[LocalBroker, ...] = ()
    folders: tuple[Folder, ...] = ()
    unusable_folders: Mapping[str, str] = field(default_factory=dict)
    """Why nothing can be said of them."""
    clock: ClockState | None = None
    huge_pages: str | None = None
    governors: frozenset[str] = frozenset()
    cgroup: Cgroup | None = None
    python: PythonBuild | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    """Files that could not be read, and why."""
