"""Topics as Spark frames and streams: the data source `format("moldau")`, on confluent-kafka and Arrow."""
