"""Pipelines: files that say what is read, what is computed and where results go."""
