"""Files that change, and Kafka's rules for what may be in them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import pytest

from moldau.security.tls.changes import FileState, StoreFiles, Watch, check_change, look_at
from moldau.security.tls.contexts import LoadedTls, server_tls
from moldau.security.tls.issuing import new_client, new_server
from moldau.security.tls.settings import TlsConfigError, TlsSettings
from tests.security.tls.world import World


def files(state: FileState) -> StoreFiles:
    return StoreFiles(MappingProxyType({"a.pem": state}))


OLD, HALF, NEW = files((1, 10, 0, 0)), files((2, 5, 1, 1)), files((2, 10, 2, 2))


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([OLD, OLD], [False, False]),
        ([NEW, NEW, NEW], [False, True, False]),
        ([HALF, NEW, NEW], [False, False, True]),
        ([files(None), NEW, NEW], [False, False, True]),
        ([NEW, OLD, OLD], [False, False, False]),
    ],
    ids=["nothing", "replaced", "written in pieces", "moved away first", "put back"],
)
def test_a_change_counts_when_it_is_over(looks: list[StoreFiles], expected: list[bool]) -> None:
    watch, changes = Watch.of(OLD), []
    for look in looks:
        watch, has_changed = watch.look(look)
        watch = Watch.of(look) if has_changed else watch
        changes.append(has_changed)
    assert changes == expected


def test_what_could_not_be_made_is_tried_again() -> None:
    watch, _ = Watch.of(OLD).look(NEW)
    for _ in range(3):
        watch, has_changed = watch.look(NEW)
        assert has_changed
    assert Watch(None, NEW).look(NEW)[1], "of files that none was ever made of"


def test_real_files_are_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "a.pem"
    settings = TlsSettings(keystore_location=str(path))
    absent = look_at(settings)
    path.write_text("one")
    first = look_at(settings)
    replacement = tmp_path / "b.pem"
    replacement.write_text("two")
    os.utime(replacement, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    replacement.rename(path)
    assert len({absent.states[str(path)], first.states[str(path)], look_at(settings).states[str(path)]}) == 3


def loaded(world: World, *hosts: str) -> LoadedTls:
    now = datetime.now(UTC)
    return server_tls(world.settings(new_server(world.authority, hosts=hosts, now=now)), now_s=world.now_s)


def test_names_may_become_more_and_not_less(world: World) -> None:
    two, three = loaded(world, "a", "b"), loaded(world, "a", "b", "c")
    check_change(two, three)
    with pytest.raises(TlsConfigError, match=r"lacks DNS:c; ssl\.allow\.san\.changes=true"):
        check_change(three, two)
    check_change(three, two, allow_san_changes=True)


def test_the_distinguished_name_stays(world: World) -> None:
    one, other = loaded(world, "a", "b"), loaded(world, "b", "a")
    check_change(one, loaded(world, "a", "b"))
    with pytest.raises(TlsConfigError, match=r"from CN=a to CN=b; ssl\.allow\.dn\.changes=true"):
        check_change(one, other)
    check_change(one, other, allow_dn_changes=True)


def test_a_name_in_another_case_is_the_same(world: World) -> None:
    now = datetime.now(UTC)
    one, other = (
        server_tls(world.settings(new_client(world.authority, name=name, now=now)), now_s=world.now_s)
        for name in ("Broker  one", "broker one")
    )
    check_change(one, other)


def test_a_trust_store_can_not_be_added(world: World) -> None:
    bare = server_tls(world.settings(world.server, truststore_certificates=None), now_s=world.now_s)
    full = server_tls(world.settings(world.server), now_s=world.now_s)
    check_change(full, full)
    with pytest.raises(TlsConfigError, match="trust store can't be added"):
        check_change(bare, full)
