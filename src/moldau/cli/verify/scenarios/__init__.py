"""One scenario in each module: what is done to a cluster, and what has to hold."""
