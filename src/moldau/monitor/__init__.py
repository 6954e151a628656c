"""The lag monitor: how consumer groups get on, on any Kafka cluster, as Burrow judges it and in seconds."""
