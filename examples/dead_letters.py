"""Dead letters, and their way back: records that do not fit are kept with the reason, and sent back once it is mended.

moldau pipeline run examples/dead_letters.py --once
moldau dead-letters list readings.dead-letters
moldau dead-letters send-back readings.dead-letters
"""

from moldau.spark.pipelines.building import Pipeline, delta, topic

pipeline = Pipeline("dead_letters")

pipeline.stream(
    "readings",
    topic("readings", valueFormat="json", valueSchema="sensor string, celsius double", onError="deadletter"),
)


@pipeline.view
def warm(readings):
    return readings.where("celsius > 20").select("sensor", "celsius")


pipeline.sink("warm_readings", delta("./lake/warm"), reads="warm")
