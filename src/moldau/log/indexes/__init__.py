"""The index files beside a segment: by offset, by timestamp, and of aborted transactions."""
