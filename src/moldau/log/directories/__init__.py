"""The entries of `log.dirs`: whose they are, what is in them, and opening it."""
