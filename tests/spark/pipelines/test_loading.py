from __future__ import annotations

from pathlib import Path

import pytest

from moldau.spark.pipelines.loading import load, with_environment
from moldau.spark.pipelines.plan import PipelineError

PIPELINE = """\
set kafka.sasl.password = '${env:CLUSTER_PASSWORD}';
create stream a from topic 'a';
create sink s into database 's' with (url = 'postgresql://ann:${env:DATABASE_PASSWORD}@db/shop')
    as select * from a;
"""


def test_passwords_come_from_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "p.sql"
    path.write_text(PIPELINE)
    plan = load(path)
    assert plan.settings["kafka.sasl.password"] == "${env:CLUSTER_PASSWORD}"
    known = with_environment(plan, {"CLUSTER_PASSWORD": "one", "DATABASE_PASSWORD": "two"})
    assert known.settings["kafka.sasl.password"] == "one"
    assert known.sinks[0].endpoint.options["url"] == "postgresql://ann:two@db/shop"
    with pytest.raises(PipelineError, match=r"^p\.sql:3: url refers to the variable DATABASE_PASSWORD"):
        with_environment(plan, {"CLUSTER_PASSWORD": "one"})
    looked_at = with_environment(plan, {"CLUSTER_PASSWORD": "one"}, needs_all=False)
    assert looked_at.settings["kafka.sasl.password"] == "one"
    assert looked_at.sinks[0].endpoint.options["url"] == plan.sinks[0].endpoint.options["url"]
