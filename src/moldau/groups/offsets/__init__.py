"""Committed offsets of groups: who may commit and fetch them, and for how long they are kept."""
