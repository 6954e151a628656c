"""Projects of Spark's own Declarative Pipelines: kept running, watched and drawn."""
