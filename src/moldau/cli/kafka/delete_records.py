"""`moldau delete-records`: partitions lose their records below offsets that a file names."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from moldau.cli.failures import FAILED, OK, UsageError
from moldau.cli.topics.leaders import delete_records
from moldau.cli.wire import open_cluster
from moldau.client.cluster import words_of
from moldau.core.ids import TopicPartition

VERSION = 1
OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1


def run(options: Namespace) -> int:
    before = offsets(options.offset_json_file)
    print("Executing records delete operation")
    with open_cluster(options) as cluster:
        answers = delete_records(cluster, before)
    print("Records delete operation completed:")
    for place in sorted(before):
        found = answers[place]
        told = f"error: {words_of(found.code)}" if found.code else f"low_watermark: {found.offset}"
        print(f"partition: {place}\t{told}")
    return FAILED if any(each.code for each in answers.values()) else OK


def offsets(path: str) -> dict[TopicPartition, int]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as wrong:
        raise UsageError(f"Unable to read file {path}: {wrong.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"Unable to read file {path}: it is no text in UTF-8") from None
    try:
        content = json.loads(text)
    except ValueError:
        raise UsageError("The input string is not a valid JSON") from None
    return parsed(content)


def parsed(content: Any) -> dict[TopicPartition, int]:
    if not isinstance(content, dict):
        raise UsageError(f"Expected JSON object, received {shown(content)}")
    version = number(content.get("version", VERSION), PARTITION_MAX, "Integer")
    if version != VERSION:
        raise UsageError(f"Not supported version field value {version}")
    if "partitions" not in content:
        raise UsageError("Missing partitions field")
    if not isinstance(content["partitions"], list):
        raise UsageError(f"Expected JSON array, received {shown(content['partitions'])}")
    found: dict[TopicPartition, int] = {}
    twice = {}
    for each in content["partitions"]:
        place, offset = entry(each)
        if place in found:
            twice[place] = str(place)
        found[place] = offset
    if twice:
        raise UsageError(f"Offset json file contains duplicate topic partitions: {','.join(twice.values())}")
    return found


def entry(value: Any) -> tuple[TopicPartition, int]:
    if not isinstance(value, dict):
        raise UsageError(f"Expected JSON object, received {shown(value)}")
    for name in ("topic", "partition", "offset"):
        if name not in value:
            raise UsageError(f"No such field exists: `{name}`")
    if not isinstance(value["topic"], str):
        raise UsageError(f"Expected `String` value, received {shown(value['topic'])}")
    place = TopicPartition(value["topic"], number(value["partition"], PARTITION_MAX, "Integer"))
    return place, number(value["offset"], OFFSET_MAX, "Long")


def number(value: Any, most: int, kind: str) -> int:
    if type(value) is not int or not -most - 1 <= value <= most:
        raise UsageError(f"Expected `{kind}` value, received {shown(value)}")
    return value


def shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
