"""All checks of the machine, in the order in which they are told."""

from __future__ import annotations

from moldau.cli.doctor.findings import Check
from moldau.cli.doctor.machine.facts import MachineFacts
from moldau.cli.doctor.machine.memory import check_cgroup, check_dirty_pages, check_huge_pages, check_swap
from moldau.cli.doctor.machine.process import (
    check_clock,
    check_governor,
    check_open_files,
    check_python,
    check_refused,
)
from moldau.cli.doctor.machine.settings import check_settings, check_tcp_buffers
from moldau.cli.doctor.machine.storage import check_folders

CHECKS: tuple[Check[MachineFacts], ...] = (
    check_folders,
    check_settings,
    check_tcp_buffers,
    check_dirty_pages,
    check_swap,
    check_huge_pages,
    check_cgroup,
    check_open_files,
    check_clock,
    check_governor,
    check_python,
    check_refused,
)
