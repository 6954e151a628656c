"""Pipelines in SQL: from text to a plan."""
