"""Version 3 of the API: the cluster as resources that link to each other, and records as streams."""
