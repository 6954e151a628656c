"""Tests that share a Spark session or an ensemble run in one process: a second one costs more than it brings."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("together")
def test_groups_of_tests_are_known_to_those_who_hand_them_out(request: pytest.FixtureRequest) -> None:
    """pytest-xdist hands out by the ends of names, which it writes into what is pytest's own."""
    if not request.config.getoption("loadgroup", False):
        pytest.skip("nobody hands out tests by groups in this run")
    assert request.node.nodeid.endswith("@together")
