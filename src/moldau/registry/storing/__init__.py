"""The topic `_schemas` and the group that elects who writes to it."""
