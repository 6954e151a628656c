"""What is found wrong with a plan before anything runs."""

from __future__ import annotations

import pytest

from moldau.spark.pipelines.check import check
from moldau.spark.pipelines.language.grammar import parse
from moldau.spark.pipelines.running.frames.sources import topic_options

SOUND = "create stream a from topic 'a'; create sink s into topic 'out' as select * from a"


def problems(source: str) -> list[str]:
    return [str(problem) for problem in check(parse(source, "p.sql", name="p"))]


def test_a_sound_plan_has_no_problems() -> None:
    assert problems(SOUND) == []


def test_prefixes_of_the_pipeline_are_those_of_its_topics() -> None:
    plan = parse(f"set groupIdPrefix = team; set transactionalIdPrefix = 'team-tx'; {SOUND}", "p.sql", name="p")
    assert check(plan) == []
    for endpoint in (plan.sources[0].endpoint, plan.sinks[0].endpoint):
        options = topic_options(endpoint, plan)
        assert (options["groupIdPrefix"], options["transactionalIdPrefix"]) == ("team", "team-tx")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("create stream a from topic 'a'", "nothing is written anywhere"),
        (f"set colour = red; {SOUND}", "setting colour is unknown; allowed: name, bootstrap.servers"),
        (f"set checkpoint = ''; {SOUND}", "p.sql:1: setting checkpoint is empty; leave it out for the default"),
        (f"create view a as select 1 as x; {SOUND}", "the name a is taken: see p.sql:1"),
        (SOUND.replace("* from a", "* from aa"), "s reads aa, which is no stream, table or view here; is a meant?"),
        (f"{SOUND};\ncreate view v as select * from w;\ncreate view w as select * from v", "view v reads itself"),
        (SOUND.replace("stream a from topic", "stream a from delta"), "read delta as a TABLE"),
        (SOUND.replace("stream a", "table a"), "table a needs a KEY"),
        (SOUND.replace("topic 'a'", "topic 'a' changes"), "change events of a need a KEY"),
        (SOUND.replace("topic 'a'", "topic 'a' deduplicate on id"), "DEDUPLICATE needs a WATERMARK"),
        (SOUND.replace("topic 'out'", "delta 'out' upsert"), "UPSERT needs a KEY"),
        (SOUND.replace("topic 'out'", "console key a upsert"), "not into console"),
        (SOUND.replace("topic 'out'", "delta 'out' output update"), "updated rows need UPSERT"),
        (SOUND.replace("topic 'out'", "delta 'out' output complete"), "use UPSERT"),
        (
            SOUND.replace("topic 'out'", "database 'sqlite_x' with (url = 'sqlite:///x.db')"),
            "doesn't begin with sqlite_",
        ),
        (
            SOUND.replace("topic 'a'", "topic 'a' with (valueFormat = xml)"),
            "a: option valueFormat = 'xml': allowed is one",
        ),
        (
            SOUND.replace("topic 'out'", "topic 'out' with (valueFormat = xml)"),
            "sink s: option valueFormat = 'xml': allo",
        ),
        (f"set kafka.auto.offset.reset = latest; {SOUND}", "where a query begins is said by startingOffsets"),
        (SOUND.replace("topic 'a'", "topic 'a' with (startingOffsets = now)"), "startingOffsets = 'now'"),
        (SOUND.replace("topic 'a'", "topic 'a' with (onError = shrug)"), "onError = 'shrug': allowed is one of fail"),
        (
            SOUND.replace("topic 'a'", "topic 'a' with (valueFormat = json, valueSchema = 'a inte')"),
            "option valueSchema",
        ),
        (SOUND.replace("topic 'out'", "topic 'out' with (delivery = twice)"), "delivery = 'twice': allowed are"),
        (
            SOUND.replace("topic 'out'", "topic 'out' with (topicPartitions = 0)"),
            "sink s: option topicPartitions = '0': allowed is a whole number above 0",
        ),
        (f"{SOUND}; expect e on s check (x) otherwise drop", "put it on what the sink reads"),
        (f"{SOUND}; expect e on a check () otherwise drop", "expectation e has no condition"),
        (f"{SOUND}; {'expect e on a check (x) otherwise drop;' * 2}", "more than one expectation e on a"),
        (
            f"{SOUND}; create table t from topic 't' key (id); expect e on t check (x) otherwise dead letter",
            "a table is read again with every batch",
        ),
        (
            SOUND.replace("topic 'out'", "files 'out'") + "; expect e on A check (x) otherwise dead letter",
            "sink s reads a, whose dead letters need a sink that takes a batch once",
        ),
        (SOUND.replace("* from a", "1 as x"), "s reads nothing"),
        (f"{SOUND};\ncreate view v as select * from a", "p.sql:2: warning: nothing reads v"),
    ],
)
def test_a_problem_is_found(source: str, said: str) -> None:
    assert any(said in line for line in problems(source)), problems(source)
