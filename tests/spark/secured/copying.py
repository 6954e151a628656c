"""A job: copies of topics, each with options of its own. Its argument is a JSON list of them.

The file that SEEN names gets the name of each target before what is noted about its copy; see `watching`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main() -> None:
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    for copy in json.loads(sys.argv[1]):
        with Path(os.environ["SEEN"]).open("a") as seen:
            seen.write(f"{copy['target']}\n")
        reading = {**copy["options"], "subscribe": copy["source"], "startingOffsets": "earliest"}
        writing = {**copy["options"], "topic": copy["target"], "delivery": copy["delivery"]}
        query = (
            session.readStream.format("moldau")
            .options(**reading)
            .load()
            .selectExpr("key", "value")
            .writeStream.format("moldau")
            .options(**writing)
            .option("checkpointLocation", copy["checkpoint"])
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    session.stop()


if __name__ == "__main__":
    main()
