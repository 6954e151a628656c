"""A Spark to run on: opened, quiet on the terminal, and looked at on its executors."""
