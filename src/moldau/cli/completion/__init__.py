"""Completion in shells: what may stand at the cursor, by the tools' own parsers and by what the cluster has."""
