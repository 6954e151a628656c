"""One secured broker with an authorizer for all of these. Nobody but the plain listener's clients is a super user."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.node.securing.secured import Secured, running_secured


@pytest.fixture(scope="package")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with running_secured(
        tmp_path_factory.mktemp("keys"),
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:ANONYMOUS",
        connection_failed_authentication_delay_ms="0",
    ) as running:
        yield running
