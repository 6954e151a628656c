"""Records in JSON."""
