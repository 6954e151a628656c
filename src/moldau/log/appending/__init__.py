"""How batches get into a log: what is checked, and new segments."""
