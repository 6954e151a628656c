"""`moldau certs`: make an authority and certificates for TLS, look at them, and renew them in time."""

from __future__ import annotations

import secrets
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.certs.client_settings import broker_settings, client_settings
from moldau.cli.certs.files import AUTHORITY, AUTHORITY_KEY, PUBLIC, SECRET, file_stem, read_file, write_files
from moldau.cli.failures import FAILED, OK, CommandFailed, UsageError
from moldau.cli.output import add_output_option, print_rows
from moldau.cli.parsing import Parser
from moldau.core.clock import SystemClock
from moldau.security.tls.certificates import InvalidRequest

if TYPE_CHECKING:
    from moldau.security.tls.issuing import Identity

# As the module says that makes certificates, which loads too much for a page of help.
KEY_TYPES = ("P-256", "RSA-2048", "RSA-4096")
LEAF_DAYS, AUTHORITY_DAYS = 397, 3_650
PASSWORD_BYTES = 18

EXAMPLES = """\
examples:
  moldau certs ca                                           certs/ca.pem for everybody, certs/ca.key for nobody
  moldau certs server --host b1.example.org --host 10.0.0.1
  moldau certs client --name alice --pkcs12                 certs/alice.pem, and the same as certs/alice.p12
  moldau certs show certs/alice.pem --within 30             exit code 1 if less than 30 days are left
  moldau certs renew certs/alice.pem                        the same names, a new key and new dates

NAME.pem holds a key and its certificate, so that both are replaced at once. Nothing is replaced without --force.
"""


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    now = datetime.fromtimestamp(SystemClock().now_ms() // 1000, UTC)
    command = {"ca": make_authority, "server": make_server, "client": make_client, "renew": renew, "show": show}
    try:
        return command[options.command](options, now)
    except InvalidRequest as wrong:
        raise UsageError(str(wrong)) from None


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau certs",
        description="Certificates for TLS: an authority of your own, and what it signs for brokers and clients.",
        epilog=EXAMPLES,
    )
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    authority = commands.add_parser("ca", help="make an authority, which signs all others")
    authority.add_argument("--name", default="Moldau CA", help="of the authority (default: %(default)s)")
    _add_making_options(authority, AUTHORITY_DAYS)
    server = commands.add_parser("server", help="make a broker's key and certificate")
    server.add_argument(
        "--host", action="append", required=True, help="a name or address that clients connect to; may be repeated"
    )
    _add_making_options(server, LEAF_DAYS)
    _add_pkcs12_options(server)
    client = commands.add_parser("client", help="make a client's key and certificate")
    client.add_argument("--name", required=True, help="of the user; Kafka's principal is then User:CN=NAME")
    _add_making_options(client, LEAF_DAYS)
    _add_pkcs12_options(client)
    again = commands.add_parser("renew", help="replace a certificate by one with the same names")
    again.add_argument("file", type=Path, metavar="FILE", help="NAME.pem, with the authority's files beside it")
    again.add_argument("--keep-key", action="store_true", help="certify the same key again (default: a new one)")
    again.add_argument("--days", type=int, default=LEAF_DAYS, help="that it is valid (default: %(default)s)")
    _add_pkcs12_options(again)
    shown = commands.add_parser("show", help="print what is in a file, PEM or PKCS12")
    shown.add_argument("file", type=Path, metavar="FILE")
    shown.add_argument("--within", type=int, metavar="DAYS", help="fail if one of them ends earlier than that")
    shown.add_argument("--password-file", type=Path, metavar="FILE", help="whose first line is the store's password")
    add_output_option(shown)
    return parser.parse_args(arguments)


def _add_making_options(parser: ArgumentParser, days: int) -> None:
    parser.add_argument("--dir", type=Path, default=Path("certs"), help="where the files are (default: ./certs)")
    parser.add_argument("--days", type=int, default=days, help="that it is valid (default: %(default)s)")
    parser.add_argument("--key-type", choices=KEY_TYPES, default=KEY_TYPES[0], help="default: %(default)s")
    parser.add_argument("--force", action="store_true", help="replace files that are there")


def _add_pkcs12_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--pkcs12", action="store_true", help="write NAME.p12 too, for Java before Kafka 2.7 and for other tools"
    )
    parser.add_argument(
        "--password-file", type=Path, metavar="FILE", help="whose first line is its password (default: a random one)"
    )


def make_authority(options: Namespace, now: datetime) -> int:
    from moldau.security.tls.issuing import new_authority

    made = new_authority(name=options.name, now=now, days=options.days, key_kind=options.key_type)
    certificate, key = options.dir / AUTHORITY, options.dir / AUTHORITY_KEY
    write_files({certificate: (made.certificate_pem(), PUBLIC), key: (made.key_pem(), SECRET)}, force=options.force)
    print(f"{certificate}  the authority's certificate: give it to every broker and client")
    print(f"{key}  the authority's key: keep it where no broker and no client is")
    return OK


def make_server(options: Namespace, now: datetime) -> int:
    from moldau.security.tls.issuing import new_key, new_server

    authority = load_authority(options.dir)
    made = new_server(authority, hosts=options.host, now=now, days=options.days, key=new_key(options.key_type))
    stem = file_stem(options.host[0], option="--host")
    path = options.dir / f"{stem}.pem"
    password = _write_identity(path, made, options, force=options.force)
    trusted = (options.dir / AUTHORITY).resolve()
    print(f"\n{broker_settings(path.resolve(), trusted, password)}\n")
    print(client_settings(trusted, identity=None, password=None), end="")
    return OK


def make_client(options: Namespace, now: datetime) -> int:
    from moldau.security.tls.issuing import new_client, new_key

    stem, authority = file_stem(options.name, option="--name"), load_authority(options.dir)
    made = new_client(authority, name=options.name, now=now, days=options.days, key=new_key(options.key_type))
    path = options.dir / f"{stem}.pem"
    password = _write_identity(path, made, options, force=options.force)
    trusted = (options.dir / AUTHORITY).resolve()
    print(f"\n{client_settings(trusted, identity=path.resolve(), password=password)}")
    return OK


def renew(options: Namespace, now: datetime) -> int:
    """The old file stays beside as NAME.pem.old, for the case that somebody has to go back."""
    from moldau.security.tls.issuing import key_like, load_identity, renewed

    path: Path = options.file
    content = read_file(path)
    old = load_identity(content, content)
    authority = load_authority(path.parent)
    if path.with_suffix(".p12").exists() and not options.pkcs12:
        raise CommandFailed(f"{path.with_suffix('.p12')} would keep the old certificate; add --pkcs12")
    key = old.key if options.keep_key else key_like(old.key)
    made = renewed(old.certificate, authority, now=now, days=options.days, key=key)
    write_files({path.with_name(f"{path.name}.old"): (content, SECRET)}, force=True)
    password = _write_identity(path, made, options, force=True)
    if password is not None:
        print(f"ssl.keystore.password={password}")
    return OK


def show(options: Namespace, now: datetime) -> int:
    from moldau.cli.certs.showing import COLUMNS, rows_of

    rows = rows_of(options.file, _first_line(options.password_file), now=now)
    print_rows(rows, columns=COLUMNS, output=options.output)
    least = min(int(str(row["days_left"])) for row in rows)
    return FAILED if options.within is not None and least < options.within else OK


def load_authority(folder: Path) -> Identity:
    from moldau.security.tls.issuing import load_identity

    certificate, key = folder / AUTHORITY, folder / AUTHORITY_KEY
    if not key.exists():
        raise CommandFailed(f"{key} is not there; make an authority with `moldau certs ca --dir {folder}`")
    try:
        return load_identity(read_file(key), read_file(certificate))
    except InvalidRequest as wrong:
        raise CommandFailed(f"{certificate} and {key}: {wrong}") from None


def _write_identity(path: Path, made: Identity, options: Namespace, *, force: bool) -> str | None:
    """The password of the PKCS12 store, if one was asked for."""
    files, password = {path: (made.key_pem() + made.certificate_pem(), SECRET)}, None
    if options.pkcs12:
        password = _first_line(options.password_file) or secrets.token_urlsafe(PASSWORD_BYTES)
        files[path.with_suffix(".p12")] = (made.pkcs12(password), SECRET)
    elif options.password_file is not None:
        raise UsageError("--password-file is for --pkcs12; keys in PEM are protected by their file's mode")
    write_files(files, force=force)
    until = f"{made.certificate.not_valid_after_utc:%Y-%m-%d}"
    print(f"{path}  key and certificate, valid until {until}")
    if options.pkcs12:
        print(f"{path.with_suffix('.p12')}  the same as PKCS12")
    return password


def _first_line(path: Path | None) -> str | None:
    if path is None:
        return None
    line = read_file(path).decode("utf-8", "replace").partition("\n")[0].rstrip("\r")
    if not line:
        raise UsageError(f"{path} begins with an empty line; expected a password")
    return line
