"""`moldau configs`: --describe and --alter, as Apache Kafka's tool does it."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.failures import OK
from moldau.cli.kafka.bootstrap import open_bootstrap
from moldau.cli.kafka.configs.changes import changes
from moldau.cli.kafka.configs.options import Entities
from moldau.cli.kafka.configs.resources import KINDS
from moldau.client.cluster import Cluster


def run(options: Namespace) -> int:
    entities: Entities = options.entities
    if options.describe:
        with open_bootstrap(options) as cluster:
            describe(cluster, entities, shows_all=options.all)
        return OK
    wanted = changes(options)
    with open_bootstrap(options) as cluster:
        if entities.type in KINDS:
            from moldau.cli.kafka.configs import resources

            resources.change(cluster, entities, wanted)
        else:
            from moldau.cli.kafka.configs import quotas

            quotas.change(cluster, entities, wanted)
    print(completed(entities))
    return OK


def describe(cluster: Cluster, entities: Entities, *, shows_all: bool) -> None:
    if entities.type in KINDS:
        from moldau.cli.kafka.configs import resources

        resources.describe(cluster, entities, shows_all=shows_all)
    else:
        from moldau.cli.kafka.configs import quotas

        quotas.describe(cluster, entities)


def completed(entities: Entities) -> str:
    if entities.name:
        return f"Completed updating config for {entities.type[:-1]} {entities.name}."
    return f"Completed updating default config for {entities.type} in the cluster."
