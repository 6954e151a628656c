"""Batches of results: where they go, which rows are dead letters, and what is kept to run a batch again."""
