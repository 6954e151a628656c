"""The schema registry: a state machine over the topic `_schemas`, one elected leader that writes, HTTP in front."""
