"""The guide to permissions: its properties start a broker, and its code makes an ACL there."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

import moldau
from moldau.core.config.load import parse_properties
from tests.guides.code_blocks import blocks, run_python

GUIDE = "docs/guides/permissions.md"


def test_the_code_makes_an_acl_on_a_broker_with_the_properties(tmp_path: Path) -> None:
    (properties,) = blocks(GUIDE, "properties")
    (code,) = blocks(GUIDE, "python")
    settings = parse_properties(properties)
    everybody = {**settings, "super.users": f"{settings['super.users']};User:ANONYMOUS"}  # nobody logs in
    wanted = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    with moldau.run(overrides=everybody) as broker:
        run_python(code, cwd=tmp_path, bootstrap=broker.bootstrap_servers)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        found = admin.describe_acls(wanted).result()
    assert [(each.principal, each.name, each.operation) for each in found] == [
        ("User:alice", "orders", AclOperation.READ)
    ]
