"""A Kerberos realm of the test run's own: a KDC on a free port of loopback, its principals, and its configuration.

The programs are Debian's, installed by root where they are missing. python-gssapi has no wheels for Linux: pip builds
it into a cache, unless it can be imported already.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.apache_kafka import free_ports
from tests.clients.toolchains import built
from tests.debian import install

REALM = "MOLDAU.TEST"
PACKAGES = ("krb5-kdc", "krb5-admin-server", "krb5-user", "libkrb5-dev")
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
GSSAPI = "gssapi>=1.8"
PLACES = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
START_S_MAX = 30.0


def program(name: str) -> str | None:
    return shutil.which(name, path=PLACES)


def require_programs() -> None:
    """Skips the test where there is no KDC to be had."""
    if not install(*PACKAGES, is_there=lambda: all(program(name) for name in PROGRAMS)):
        pytest.skip(f"a KDC is not installed, and only root can install it, with apt-get install {' '.join(PACKAGES)}")


@cache
def gssapi_place() -> Path | None:
    """Where python-gssapi is for processes of the tests; None if they find it anyway. Skips the test without it."""
    # Once: what this process has imported by way of the cache is no module that others find.
    if importlib.util.find_spec("gssapi") is not None:
        return None

    def build(target: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, "--target", str(target), GSSAPI], check=True, capture_output=True, text=True)

    try:
        return built(f"gssapi-{sys.version_info[0]}.{sys.version_info[1]}", [], build)
    except (subprocess.CalledProcessError, OSError) as wrong:
        pytest.skip(f"python-gssapi can't be built, which needs a C compiler, libkrb5-dev and PyPI: {wrong}")


class Realm:
    """One KDC. What is kept for it is in `folder`, and goes with the realm."""

    def __init__(self, folder: Path, name: str = REALM) -> None:
        self.folder = folder
        self.name = name
        self.port = free_ports(1)[0]
        self.config = folder / "krb5.conf"
        self.config.write_text(self._client_text())
        (folder / "kdc.conf").write_text(self._kdc_text())
        self._process: subprocess.Popen[bytes] | None = None
        self._run("kdb5_util", "create", "-s", "-r", name, "-P", "of the database")

    @property
    def environment(self) -> dict[str, str]:
        """Of whoever belongs to this realm; the cache of tickets is an empty one."""
        return {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder / 'nobody.cache'}",
            "KRB5RCACHEDIR": str(self.folder),
        }

    def start(self) -> None:
        with (self.folder / "kdc.txt").open("ab") as output:
            self._process = subprocess.Popen(
                [str(program("krb5kdc")), "-n", "-r", self.name],
                env={**os.environ, **self.environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        deadline_s = time.monotonic() + START_S_MAX
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "kdc.txt").read_text()
            assert time.monotonic() < deadline_s, "the KDC did not start"
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def add(self, principal: str, *options: str) -> Path:
        """The keytab of a principal, which gets a random key when it is asked for first."""
        keytab = self.folder / f"{principal.replace('/', '_')}.keytab"
        if keytab.exists():
            return keytab
        self.admin("addprinc", "-randkey", *options, principal)
        return self.export(principal, keytab)

    def export(self, principal: str, keytab: Path) -> Path:
        """Its key of now: whoever has tickets or keys of before has the wrong ones only after `cpw`."""
        self.admin("ktadd", "-k", str(keytab), "-norandkey", principal)
        return keytab

    def admin(self, *words: str) -> str:
        return self._run("kadmin.local", "-r", self.name, *words)

    def ticket(self, principal: str, keytab: Path, *options: str) -> Path:
        """A cache with a ticket, as a user has it after kinit."""
        cache = self.folder / f"{principal.replace('/', '_')}.cache"
        self._run("kinit", "-c", str(cache), "-k", "-t", str(keytab), *options, principal)
        return cache

    def _run(self, name: str, *words: str) -> str:
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            [str(program(name)), *words],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (name, words, done.stdout, done.stderr)
        return done.stdout

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _client_text(self) -> str:
        return f"""
[libdefaults]
    default_realm = {self.name}
    dns_lookup_realm = false
    dns_lookup_kdc = false
    dns_canonicalize_hostname = false
    rdns = false
    udp_preference_limit = 1
[realms]
    {self.name} = {{
        kdc = 127.0.0.1:{self.port}
    }}
[domain_realm]
    localhost = {self.name}
"""

    def _kdc_text(self) -> str:
        return f"""
[kdcdefaults]
    kdc_listen = 127.0.0.1:{self.port}
    kdc_tcp_listen = 127.0.0.1:{self.port}
[realms]
    {self.name} = {{
        database_name = {self.folder}/principal
        key_stash_file = {self.folder}/stash
        acl_file = {self.folder}/kadm5.acl
        supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
        max_life = 10h
        max_renewable_life = 7d
    }}
"""


@contextlib.contextmanager
def running_realm(name: str = REALM) -> Iterator[Realm]:
    require_programs()
    folder = Path(tempfile.mkdtemp(prefix="moldau-kerberos-"))
    try:
        realm = Realm(folder, name)
        try:
            realm.start()
            yield realm
        finally:
            realm.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def in_realm(realm: Realm, **more: str) -> Iterator[None]:
    """This process, and those that it starts meanwhile, belong to the realm."""
    place = gssapi_place()
    given = {**realm.environment, **more}
    if place is not None:
        given["PYTHONPATH"] = os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")]))
    with _environment(given), _on_the_path(place):
        yield


@contextlib.contextmanager
def _environment(given: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _on_the_path(place: Path | None) -> Iterator[None]:
    if place is None or str(place) in sys.path:
        yield
        return
    sys.path.append(str(place))
    try:
        yield
    finally:
        sys.path.remove(str(place))
