"""Offsets of reads and queries: how users and checkpoints write them, and those committed to groups."""
