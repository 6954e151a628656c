"""Streams joined with tables of topics: tables are kept by key, pinned for each batch, and asked for by key."""
