"""Who is told of a group in trouble: when, by pure rules, and how, by HTTP or mail."""
