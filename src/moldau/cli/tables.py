"""`moldau tables`: what a table is made of, small files into large ones, and the removal of what nobody needs."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from moldau.cli.connection import split_pair
from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.output import TABLE, add_output_option
from moldau.cli.parsing import Parser

if TYPE_CHECKING:
    from moldau.spark.tables.maintenance import Description, MaintainedTable

EXAMPLES = """\
examples:
  moldau tables describe /data/lake/orders                             a Delta table
  moldau tables describe /data/lake --table shop.orders                a table of an Iceberg warehouse
  moldau tables describe postgresql://shop@db/shop --table orders -o json
  moldau tables optimize s3://bucket/orders --option storage.aws_region=eu-central-1
  moldau tables optimize /data/lake --table shop.orders --target-file-size 512m
  moldau tables vacuum /data/lake/orders --dry-run                     what would go
  moldau tables vacuum /data/lake/orders --older-than 7d

Queries may write to the table meanwhile. What vacuum removes is needed by no state of the table from the given time
on: older states can't be read again.
"""
OLDER_THAN_DEFAULT = "7d"
# A batch that runs has staged files that no state of the table names yet.
OLDER_THAN_MS_MIN = 3_600_000

Result = TypeVar("Result")


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    action: Callable[[Namespace], int] = options.action
    try:
        return action(options)
    except ModuleNotFoundError as wrong:
        raise CommandFailed(
            f"tables need Spark's extra: run pip install 'moldau[spark]' ({wrong.name} is missing)"
        ) from None


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau tables",
        description="Look after the tables that Spark queries write to.",
        epilog=EXAMPLES,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    describing = actions.add_parser("describe", help="columns, partitions, files and rows")
    describing.set_defaults(action=describe)
    add_output_option(describing)
    optimizing = actions.add_parser("optimize", help="make large files of small ones")
    optimizing.set_defaults(action=optimize)
    optimizing.add_argument("--target-file-size", metavar="SIZE", help="as in 256m (default: what the table says)")
    vacuuming = actions.add_parser("vacuum", help="remove old states of the table and files that belong to none")
    vacuuming.set_defaults(action=vacuum)
    vacuuming.add_argument(
        "--older-than", metavar="TIME", default=OLDER_THAN_DEFAULT, help="as in 36h, at least 1h (default: %(default)s)"
    )
    vacuuming.add_argument("--dry-run", action="store_true", help="say what would go, and remove nothing")
    for made in (describing, optimizing, vacuuming):
        made.add_argument("url", metavar="URL", help="a Delta table, an Iceberg warehouse, or a database")
        made.add_argument("-t", "--table", metavar="NAME", help="which table of a warehouse or database")
        made.add_argument(
            "--option",
            metavar="KEY=VALUE",
            action="append",
            default=[],
            help="as for Spark, such as storage.aws_region=…",
        )
    return parser.parse_args(arguments)


def describe(options: Namespace) -> int:
    found = told(lambda: opened(options).describe())
    if options.output != TABLE:
        indent = 2 if options.output == "json" else None
        print(json.dumps(asdict(found), indent=indent))
        return OK
    for name, value in lines_of(found):
        print(f"{name:<12}{value}".rstrip())
    return OK


def lines_of(found: Description) -> Iterator[tuple[str, object]]:
    yield from (("format", found.format), ("location", found.location), ("state", found.state), ("rows", found.rows))
    if found.files is not None and found.size_bytes is not None:
        yield "files", f"{found.files}, {found.size_bytes / (1 << 20):.1f} MiB"
    yield "partitions", ", ".join(found.partitions) or "none"
    for query, batch in found.queries.items():
        yield "query", f"{query} up to batch {batch}"
    for number, (name, kind) in enumerate(found.columns):
        yield "columns" if number == 0 else "", f"{name} {kind}"


def optimize(options: Namespace) -> int:
    from moldau.spark.tables.options import file_bytes

    size = options.target_file_size
    wanted = None if size is None else told(lambda: file_bytes({"targetfilesize": size}, None))
    done = told(lambda: opened(options).optimize(wanted))
    if done.files_after == done.files_before:
        print(f"{done.files_before} files, none of them worth rewriting")
    else:
        print(f"{done.files_before} files became {done.files_after}")
    return OK


def vacuum(options: Namespace) -> int:
    from moldau.spark.option_values import OptionValues

    values = OptionValues({"older-than": options.older_than})
    older_than_ms = told(lambda: values.duration_ms("older-than", default=0))
    if older_than_ms < OLDER_THAN_MS_MIN:
        raise UsageError("--older-than takes 1h or more: batches that run have files that the table doesn't name yet")
    done = told(lambda: opened(options).vacuum(older_than_ms=older_than_ms, dry_run=options.dry_run))
    for path in done.files if options.dry_run else ():
        print(path)
    would = "would be " if options.dry_run else ""
    snapshots = f" and {done.snapshots} snapshots" if done.snapshots else ""
    print(f"{len(done.files)} files{snapshots} {would}removed")
    return OK


def opened(options: Namespace) -> MaintainedTable:
    from moldau.spark.tables.maintenance import maintained_table

    return maintained_table(
        options.url, options.table, dict(split_pair(pair, option="--option") for pair in options.option)
    )


def told(action: Callable[[], Result]) -> Result:
    """What libraries raise becomes one line."""
    from adbc_driver_manager import Error
    from deltalake.exceptions import DeltaError
    from pyiceberg.exceptions import CommitFailedException

    from moldau.spark.option_values import OptionError
    from moldau.spark.tables.causes import causes_in_a_line
    from moldau.spark.tables.maintenance import NotMaintained

    try:
        return action()
    except OptionError as wrong:
        raise UsageError(str(wrong)) from None
    except NotMaintained as wrong:
        raise CommandFailed(str(wrong)) from None
    except (DeltaError, CommitFailedException, Error, OSError) as wrong:
        if getattr(wrong, "errno", None) is not None:
            raise  # of this machine's files
        raise CommandFailed(causes_in_a_line(str(wrong).strip()).partition("\n")[0]) from None
