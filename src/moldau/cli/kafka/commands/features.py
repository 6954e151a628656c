"""The command line of `moldau features`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.actions import ImportedAction, action_parser, run_action
from moldau.cli.kafka.bootstrap import add_bootstrap_options, behind_action
from moldau.cli.parsing import whole

WORK = "moldau.cli.kafka.features"
EXAMPLES = """\
examples:
  moldau features describe
  moldau features upgrade --feature group.version=1 --dry-run
  moldau features downgrade --feature group.version=0
  moldau features disable --feature group.version
  moldau features version-mapping --release-version 4.2-IV1
  moldau features feature-dependencies --feature eligible.leader.replicas.version=1
"""


def main(arguments: list[str]) -> int:
    return run_action(parse(behind_action(arguments)))


def parse(arguments: list[str]) -> Namespace:
    parser = action_parser("features", "This tool manages feature flags in Kafka.", EXAMPLES)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    describe = actions.add_parser("describe", help="the features and their levels")
    describe.set_defaults(action=ImportedAction(WORK, "describe_features"))
    describe.add_argument("--node-id", metavar="ID", type=whole(0, 2**31 - 1, "node id"), help="as this node sees them")
    changing = []
    for name in ("upgrade", "downgrade", "disable"):
        action = actions.add_parser(name, help=f"{name} features" if name != "disable" else "the same as level 0")
        action.set_defaults(
            action=ImportedAction(WORK, "change_features"), op=name, metadata=None, release_version=None, unsafe=False
        )
        action.add_argument(
            "--feature",
            metavar="NAME" if name == "disable" else "NAME=LEVEL",
            action="append",
            default=[],
            help="may be repeated",
        )
        action.add_argument("--dry-run", action="store_true", help="only try")
        if name != "disable":
            action.add_argument("--metadata", metavar="VERSION", help="deprecated: a level of metadata.version")
            action.add_argument("--release-version", metavar="VERSION", help="all features as this version has them")
        if name != "upgrade":
            action.add_argument("--unsafe", action="store_true", help="although metadata may be lost")
        changing.append(action)
    mapping = actions.add_parser("version-mapping", help="the levels of features of a release")
    mapping.set_defaults(action=ImportedAction(WORK, "print_mapping"))
    mapping.add_argument("--release-version", metavar="VERSION", help="(default: the newest in production)")
    needs = actions.add_parser("feature-dependencies", help="what a level of a feature needs")
    needs.set_defaults(action=ImportedAction(WORK, "print_dependencies"))
    needs.add_argument("--feature", metavar="NAME=LEVEL", action="append", required=True, help="may be repeated")
    for action in (describe, *changing, mapping, needs):
        add_bootstrap_options(action)
    return parser.parse_args(arguments)
