"""Topics as tables by their names, for questions in SQL."""
